package control

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
)

const (
	// collectRest is the least time between two collections that nobody asked for.
	collectRest = time.Minute
	// collectShare bounds what collections take of the time: each is followed by so many times its own length of rest.
	collectShare = 20
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
		begun := s.clock()
		if out, err := s.Collect(ctx, CollectionRequest{}); err != nil && ctx.Err() == nil {
			s.log.Warn("not collected", "error", err.Error(), "retry_in", collectRest.String())
		} else if len(out.Removals) > 0 {
			s.log.Info("collected", "removed", len(out.Removals), "freed_bytes", out.Freed, "kept_bytes", out.Kept)
		}
		if wait(ctx, nil, max(collectRest, collectShare*s.clock().Sub(begun))) == nil {
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
	now := s.clock()
	terms := slipway.CollectionTerms{Keep: s.cfg.KeepRevisions, Limit: s.cfg.DiskLimit, Since: now, Idle: now.Add(-s.cfg.UploadRetention), All: in.All}
	if s.busy != nil { // before the records are read: what a build finished meanwhile left is then protected by this or named there
		if at := s.busy(); !at.IsZero() && at.Before(terms.Since) {
			terms.Since = at
		}
	}
	items, err := s.shelved(ctx, terms.Since)
	if err != nil {
		return slipway.Collection{}, err
	}
	held, err := s.viewHoldings(ctx)
	if err != nil {
		return slipway.Collection{}, err
	}
	plan := slipway.Collect(items, held, terms)
	if in.DryRun {
		return plan, nil
	}
	return s.remove(ctx, plan, terms)
}

// shelved lists what is of the kinds on the disk, and the blobs. Blobs that are young count as in use.
func (s *Service) shelved(ctx context.Context, since time.Time, kinds ...slipway.ShelfKind) (items []slipway.Shelved, err error) {
	if s.shelf != nil {
		if items, err = s.shelf.List(ctx, kinds...); err != nil {
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

// room refuses a build when what the records hold on to leaves none within the limit: nothing that could go would help.
func (s *Service) room(ctx context.Context) error {
	if s.cfg.DiskLimit == 0 {
		return nil
	}
	items, err := s.shelved(ctx, s.clock(), slipway.ShelfBundle, slipway.ShelfLayer, slipway.ShelfTool)
	if err != nil {
		return err
	}
	held, err := s.viewHoldings(ctx)
	if err != nil {
		return err
	}
	if needed := slipway.HeldBytes(items, held); needed > s.cfg.DiskLimit {
		return slipway.Errorf(slipway.CodeTooLarge, "no disk is left to build: what running and redeployable revisions need takes %s, and --disk-limit is %s; "+
			"delete deployments, or ask the operator to raise --disk-limit or lower --keep-revisions, and deploy again", gibibytes(needed), gibibytes(s.cfg.DiskLimit))
	}
	return nil
}

func gibibytes(bytes int64) string { return fmt.Sprintf("%.2f GiB", float64(bytes)/(1<<30)) }

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
