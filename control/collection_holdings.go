package control

import (
	"cmp"
	"context"
	"slices"

	"github.com/slipway-dev/slipway"
)

// viewHoldings is holdings in a transaction of its own.
func (s *Service) viewHoldings(ctx context.Context) (held slipway.Holdings, err error) {
	running, err := s.runningHere()
	if err != nil {
		return held, err
	}
	err = s.store.View(ctx, func(tx slipway.Tx) error {
		held, err = s.holdings(tx, running)
		return err
	})
	return held, err
}

// runningHere lists the revisions that have processes on this machine: one that was replaced goes on until its streams end.
func (s *Service) runningHere() (map[string]bool, error) {
	here := map[string]bool{}
	if s.running == nil {
		return here, nil
	}
	ids, err := s.running()
	for _, id := range ids {
		here[id] = true
	}
	return here, err
}

// holdings says what the records hold on to: the source and the artifact of each revision that runs, will run, is the latest
// or is among the newest of its deployment.
func (s *Service) holdings(tx slipway.Tx, running map[string]bool) (slipway.Holdings, error) {
	c := claims{
		held:      slipway.Holdings{Needed: map[string]string{}, Known: map[string]bool{}, Idle: map[string]string{}},
		artifacts: map[string]slipway.Artifact{}, uploads: map[string]string{},
	}
	artifacts, err := tx.Artifacts()
	if err != nil {
		return c.held, err
	}
	for _, a := range artifacts {
		c.artifacts[a.Digest] = a
	}
	uploads, err := tx.Uploads()
	if err != nil {
		return c.held, err
	}
	for _, u := range uploads {
		c.know(u)
	}
	ranks, err := s.rank(tx, running)
	if err != nil {
		return c.held, err
	}
	for _, r := range ranks {
		c.hold(r.Revision, r.why)
	}
	return c.held, nil
}

// ranked is a revision and why what it is made of must stay; "" = it may go.
type ranked struct {
	slipway.Revision
	why string
}

// rank says of each revision whether it must stay.
func (s *Service) rank(tx slipway.Tx, running map[string]bool) ([]ranked, error) {
	deployments, err := tx.Deployments(slipway.DeploymentQuery{Statuses: []string{
		string(slipway.DeploymentAwaitingDatabase), string(slipway.DeploymentReady), string(slipway.DeploymentUnused), string(slipway.DeploymentAwaitingDelete), string(slipway.DeploymentUnknown),
	}})
	if err != nil {
		return nil, err
	}
	active, latest := map[string]bool{}, map[string]bool{}
	for _, d := range deployments {
		active[d.ActiveRevisionID], latest[d.LatestRevisionID] = true, true
	}
	revisions, err := tx.Revisions(slipway.RevisionQuery{})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(revisions, func(a, b slipway.Revision) int { return cmp.Compare(b.Number, a.Number) })
	newest, out := map[string]int{}, make([]ranked, 0, len(revisions))
	for _, r := range revisions {
		why := ""
		switch {
		case active[r.ID] || running[r.ID]:
			why = "a revision that runs needs it"
		case !r.Status.Terminal():
			why = "a revision on its way needs it"
		case latest[r.ID]:
			why = "the latest revision of its deployment needs it"
		case newest[r.DeploymentID] < s.cfg.KeepRevisions && r.ArtifactDigest != "":
			why = "a revision that can be redeployed needs it"
		}
		if r.ArtifactDigest != "" {
			newest[r.DeploymentID]++
		}
		out = append(out, ranked{r, why})
	}
	return out, nil
}

type claims struct {
	held      slipway.Holdings
	artifacts map[string]slipway.Artifact
	uploads   map[string]string // digest by deployment and path
}

// know records an upload: until a revision needs its archive, that may go.
func (c claims) know(u slipway.Upload) {
	if !u.Stored() {
		return
	}
	place := blobPlace(u.Digest)
	c.uploads[u.DeploymentID+" "+u.ObjectPath] = u.Digest
	c.held.Known[place] = true
	if c.held.Idle[place] == "" {
		c.held.Idle[place] = "it was uploaded and never used"
	}
}

// hold records what a revision names; why is "" for one that may go.
func (c claims) hold(r slipway.Revision, why string) {
	var places []string
	if r.ArtifactDigest != "" && r.Source.Built() {
		places = append(places, slipway.BundlePath("bundles", r.ArtifactDigest))
		for _, p := range c.artifacts[r.ArtifactDigest].Parts {
			places = append(places, blobPlace(p.Blob), p.Path)
		}
	}
	if digest := c.uploads[r.DeploymentID+" "+text(r.SourceRevisionConfig.SourceTarballPath)]; digest != "" {
		places = append(places, blobPlace(digest))
		c.held.Idle[blobPlace(digest)] = "it is the source of revisions that need not be built again"
	}
	for _, place := range places {
		c.held.Known[place] = true
		if why != "" && c.held.Needed[place] == "" {
			c.held.Needed[place] = why
		}
	}
}

// archiveGone says, in one sentence a user can act on, that a revision's uploaded archive is not stored any more; "" = it is,
// or the revision is not made of one.
func archiveGone(tx slipway.Tx, r slipway.Revision) (string, error) {
	if r.Source != slipway.SourceInternalSource || r.ArtifactDigest != "" {
		return "", nil
	}
	u, err := tx.UploadByPath(r.DeploymentID, text(r.SourceRevisionConfig.SourceTarballPath))
	if slipway.ErrorCode(err) == slipway.CodeNotFound || err == nil && !u.Stored() {
		return "its uploaded archive is not stored any more; upload it again and PATCH source_tarball_path", nil
	}
	return "", err
}
