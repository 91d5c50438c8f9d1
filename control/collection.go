package control

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
)

const (
	// collectRest is the least time between two collections that nobody asked for.
	collectRest = time.Minute
	// collectEvery is the most, for what happens without a change of the records: caches grow.
	collectEvery = time.Hour
	// blobGrace is how long a blob stays that no record names yet: its upload is not complete.
	blobGrace = 2 * blobTTL
)

// collecting keeps two collections from running at once.
type collecting struct{ sync.Mutex }

// CollectionRequest says how to collect.
type CollectionRequest struct {
	DryRun bool // only say what would go
	All    bool // everything that is not needed, also while there is room
}

// CollectNow removes what nobody needs from the installation's disk, and says what and why.
func (s *Service) CollectNow(ctx context.Context, who slipway.Principal, in CollectionRequest) (slipway.Collection, error) {
	if err := authorizeOrganisation(who, mayCollect); err != nil {
		return slipway.Collection{}, err
	}
	out, err := s.Collect(ctx, in)
	if err != nil || in.DryRun {
		return out, wrap("collect", err)
	}
	err = s.update(ctx, func(tx slipway.Tx) error {
		return s.audit(tx, who, "collect_garbage", "", map[string]any{"removed": len(out.Removals), "freed_bytes": out.Freed, "all": in.All})
	})
	return out, wrap("collect", err)
}

// KeepTidy collects at the start, after builds and deletions, and from time to time, until ctx ends.
func (s *Service) KeepTidy(ctx context.Context) error {
	for ctx.Err() == nil {
		_, changed := s.changed.state()
		if out, err := s.Collect(ctx, CollectionRequest{}); err != nil && ctx.Err() == nil {
			s.log.Warn("not collected", "error", err.Error(), "retry_in", collectRest.String())
		} else if len(out.Removals) > 0 {
			s.log.Info("collected", "removed", len(out.Removals), "freed_bytes", out.Freed, "kept_bytes", out.Kept)
		}
		if wait(ctx, nil, collectRest) == nil {
			_ = wait(ctx, changed, collectEvery)
		}
	}
	return nil
}

// Collect is CollectNow for the installation itself. What cannot be removed now stays for the next time; a crash at any
// moment leaves nothing marked as there that is not.
func (s *Service) Collect(ctx context.Context, in CollectionRequest) (slipway.Collection, error) {
	s.collect.Lock()
	defer s.collect.Unlock()
	terms := slipway.CollectionTerms{Keep: s.cfg.KeepRevisions, Limit: s.cfg.DiskLimit, Since: s.clock(), All: in.All}
	if s.busy != nil { // before the records are read: what a build finished meanwhile left is then protected by this or named there
		if at := s.busy(); !at.IsZero() && at.Before(terms.Since) {
			terms.Since = at
		}
	}
	items, err := s.shelved(ctx, terms.Since)
	if err != nil {
		return slipway.Collection{}, err
	}
	var held slipway.Holdings
	if err := s.store.View(ctx, func(tx slipway.Tx) (err error) {
		held, err = s.holdings(tx, terms.Keep)
		return err
	}); err != nil {
		return slipway.Collection{}, err
	}
	plan := slipway.Collect(items, held, terms)
	if in.DryRun {
		return plan, nil
	}
	return s.remove(ctx, plan, terms)
}

// shelved lists the disk and the blobs. Blobs that are young count as in use.
func (s *Service) shelved(ctx context.Context, since time.Time) (items []slipway.Shelved, err error) {
	if s.shelf != nil {
		if items, err = s.shelf.List(ctx); err != nil {
			return nil, err
		}
	}
	young := s.clock().Add(-blobGrace)
	err = s.blob.List(ctx, func(b slipway.BlobInfo) error {
		if b.UsedAt.After(young) && b.UsedAt.Before(since) {
			b.UsedAt = since
		}
		items = append(items, slipway.Shelved{Path: blobPlace(b.Digest), Kind: slipway.ShelfBlob, Size: b.Size, UsedAt: b.UsedAt})
		return nil
	})
	return items, err
}

func blobPlace(digest string) string { return "blobs/" + digest }

// holdings says what the records hold on to: the source and the artifact of each revision that runs, will run, or is among
// the newest of its deployment.
func (s *Service) holdings(tx slipway.Tx, keep int) (slipway.Holdings, error) {
	h := claims{held: slipway.Holdings{Needed: map[string]string{}, Known: map[string]bool{}}, artifacts: map[string]slipway.Artifact{}, uploads: map[string]string{}}
	artifacts, err := tx.Artifacts()
	if err != nil {
		return h.held, err
	}
	for _, a := range artifacts {
		h.artifacts[a.Digest] = a
	}
	uploads, err := tx.Uploads()
	if err != nil {
		return h.held, err
	}
	for _, u := range uploads {
		h.uploads[u.DeploymentID+" "+u.ObjectPath] = u.Digest
		h.held.Known[blobPlace(u.Digest)] = true
	}
	deployments, err := tx.Deployments(slipway.DeploymentQuery{Statuses: []string{
		string(slipway.DeploymentAwaitingDatabase), string(slipway.DeploymentReady), string(slipway.DeploymentUnused), string(slipway.DeploymentAwaitingDelete), string(slipway.DeploymentUnknown),
	}})
	if err != nil {
		return h.held, err
	}
	active := map[string]bool{}
	for _, d := range deployments {
		active[d.ActiveRevisionID] = d.ActiveRevisionID != ""
	}
	revisions, err := tx.Revisions(slipway.RevisionQuery{})
	if err != nil {
		return h.held, err
	}
	slices.SortStableFunc(revisions, func(a, b slipway.Revision) int { return int(b.Number - a.Number) })
	newest := map[string]int{}
	for _, r := range revisions {
		why := ""
		switch {
		case active[r.ID]:
			why = "a revision that runs needs it"
		case !r.Status.Terminal():
			why = "a revision on its way needs it"
		case newest[r.DeploymentID] < keep && r.ArtifactDigest != "":
			why = "a revision that can be redeployed needs it"
		}
		if r.ArtifactDigest != "" {
			newest[r.DeploymentID]++
		}
		h.hold(r, why)
	}
	return h.held, nil
}

type claims struct {
	held      slipway.Holdings
	artifacts map[string]slipway.Artifact
	uploads   map[string]string // digest by deployment and path
}

// hold records what a revision names; why is "" for one that may go.
func (h claims) hold(r slipway.Revision, why string) {
	var places []string
	if r.ArtifactDigest != "" && r.Source.Built() {
		places = append(places, slipway.BundlePath("bundles", r.ArtifactDigest))
		for _, p := range h.artifacts[r.ArtifactDigest].Parts {
			places = append(places, blobPlace(p.Blob), p.Path)
		}
	}
	if digest := h.uploads[r.DeploymentID+" "+text(r.SourceRevisionConfig.SourceTarballPath)]; digest != "" {
		places = append(places, blobPlace(digest))
	}
	for _, place := range places {
		h.held.Known[place] = true
		if why != "" && h.held.Needed[place] == "" {
			h.held.Needed[place] = why
		}
	}
}

// remove carries a collection out: first the records say which artifacts are given up, then everything goes.
func (s *Service) remove(ctx context.Context, plan slipway.Collection, terms slipway.CollectionTerms) (slipway.Collection, error) {
	done := slipway.Collection{Kept: plan.Kept + plan.Freed, Needed: plan.Needed}
	if len(plan.Removals) == 0 {
		return done, nil
	}
	free, err := s.giveUp(ctx, plan.Removals, terms.Keep)
	if err != nil {
		return done, err
	}
	before := terms.Since.Add(-time.Nanosecond)
	for _, item := range free {
		gone := false
		if item.Kind == slipway.ShelfBlob {
			gone, err = s.blob.Expire(ctx, strings.TrimPrefix(item.Path, "blobs/"), before)
		} else {
			gone, err = s.shelf.Remove(ctx, item.Path, before)
		}
		if err != nil {
			return done, err
		}
		if gone {
			done.Removals = append(done.Removals, item)
			done.Freed, done.Kept = done.Freed+item.Size, done.Kept-item.Size
		}
	}
	return done, s.forgetArtifacts(ctx)
}

// giveUp records which artifacts cannot be had any more once the things are gone, and returns those that nobody needs after
// all: a revision may have come to need one since the look at the records.
func (s *Service) giveUp(ctx context.Context, items []slipway.Removal, keep int) (free []slipway.Removal, err error) {
	err = s.store.Update(ctx, func(tx slipway.Tx) error {
		free = nil
		held, err := s.holdings(tx, keep)
		if err != nil {
			return err
		}
		made := map[string][]string{} // artifacts by the place of an archive of theirs
		all, err := tx.Artifacts()
		if err != nil {
			return err
		}
		known := map[string]slipway.Artifact{}
		for _, a := range all {
			known[a.Digest] = a
			for _, p := range a.Parts {
				made[blobPlace(p.Blob)] = append(made[blobPlace(p.Blob)], a.Digest)
			}
		}
		for _, item := range items {
			if held.Needed[item.Path] != "" {
				continue
			}
			free = append(free, item)
			lost := made[item.Path]
			if digest := "sha256:" + strings.TrimPrefix(item.Path, "bundles/"); item.Kind == slipway.ShelfBundle && held.Known[item.Path] && known[digest].Parts == nil {
				lost = append(lost, digest)
			}
			for _, digest := range lost {
				a := known[digest]
				a.Digest, a.Parts, a.CollectedAt = digest, nil, s.clock()
				if err := tx.PutArtifact(a); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return free, err
}

// forgetArtifacts removes the records of artifacts that no revision names.
func (s *Service) forgetArtifacts(ctx context.Context) error {
	return s.store.Update(ctx, func(tx slipway.Tx) error {
		all, err := tx.Artifacts()
		if err != nil || len(all) == 0 {
			return err
		}
		revisions, err := tx.Revisions(slipway.RevisionQuery{})
		if err != nil {
			return err
		}
		named := map[string]bool{}
		for _, r := range revisions {
			named[r.ArtifactDigest] = true
		}
		for _, a := range all {
			if !named[a.Digest] {
				if err := tx.DeleteArtifact(a.Digest); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// FetchArtifact calls fn for each part of an artifact that is not on the machine where it is to run; the bundle comes last.
// CodeNotFound: the artifact is nowhere.
func (s *Service) FetchArtifact(ctx context.Context, digest string, fn func(part slipway.ArtifactPart) error) error {
	var known slipway.Artifact
	if err := s.store.View(ctx, func(tx slipway.Tx) (err error) {
		known, err = tx.Artifact(digest)
		return err
	}); err != nil {
		return wrap("fetch artifact", err)
	}
	if known.Parts == nil {
		return slipway.Errorf(slipway.CodeNotFound, "the artifact %s is not stored here", digest)
	}
	bundle := slipway.BundlePath("bundles", digest)
	for _, last := range []bool{false, true} {
		for _, p := range known.Parts {
			if (p.Path == bundle) == last {
				if err := fn(p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
