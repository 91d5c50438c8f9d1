package controltest

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/slipway-dev/slipway"
)

func (t *tx) ClaimBuild(tenantID string, now time.Time) (slipway.Revision, error) {
	busy, free := map[string]int{}, []slipway.Revision{}
	for _, r := range t.revisions {
		switch {
		case r.Status == slipway.Building && r.LeaseExpires.After(now):
			busy[r.TenantID]++
		case (r.Status == slipway.AwaitingBuild || r.Status == slipway.Building) && (tenantID == "" || r.TenantID == tenantID):
			free = append(free, r)
		}
	}
	if len(free) == 0 {
		return slipway.Revision{}, none("revision", "to build")
	}
	return slices.MinFunc(free, func(a, b slipway.Revision) int {
		return cmp.Or(cmp.Compare(busy[a.TenantID], busy[b.TenantID]), t.turns[a.TenantID].Compare(t.turns[b.TenantID]),
			a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	}), nil
}

func (t *tx) TakeBuildTurn(tenantID string, now time.Time) error {
	t.turns[tenantID] = now
	return nil
}

func (t *tx) Artifact(digest string) (slipway.Artifact, error) {
	return find(t.artifacts, "Artifact", digest)
}

func (t *tx) Artifacts() ([]slipway.Artifact, error) {
	return slices.SortedFunc(maps.Values(t.artifacts), func(a, b slipway.Artifact) int { return cmp.Compare(a.Digest, b.Digest) }), nil
}

func (t *tx) PutArtifact(a slipway.Artifact) error {
	t.artifacts[a.Digest] = a
	return nil
}

func (t *tx) DeleteArtifact(digest string) error {
	delete(t.artifacts, digest)
	return nil
}

func (t *tx) Uploads() ([]slipway.Upload, error) {
	return slices.SortedFunc(maps.Values(t.uploads), func(a, b slipway.Upload) int { return cmp.Compare(a.ID, b.ID) }), nil
}

func (t *tx) DeleteUpload(id string) error {
	delete(t.uploads, id)
	return nil
}
