package control

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
)

// remove carries a collection out: first the records say what is given up, then everything goes. What cannot be removed does
// not keep the rest.
func (s *Service) remove(ctx context.Context, plan slipway.Collection, terms slipway.CollectionTerms) (slipway.Collection, error) {
	done := slipway.Collection{Kept: plan.Kept + plan.Freed, Needed: plan.Needed, Held: plan.Held}
	var failed []error
	if len(plan.Removals) > 0 {
		free, err := s.giveUp(ctx, plan.Removals)
		if err != nil {
			return done, err
		}
		before := terms.Since.Add(-time.Nanosecond)
		for _, item := range free {
			gone, err := s.removeOne(ctx, item, before)
			failed = append(failed, err)
			if gone {
				done.Removals = append(done.Removals, item)
				done.Freed, done.Kept = done.Freed+item.Size, done.Kept-item.Size
			}
		}
	}
	return done, errors.Join(append(failed, s.forget(ctx))...)
}

func (s *Service) removeOne(ctx context.Context, item slipway.Removal, before time.Time) (bool, error) {
	if item.Kind == slipway.ShelfBlob {
		return s.blob.Expire(ctx, strings.TrimPrefix(item.Path, "blobs/"), before)
	}
	return s.shelf.Remove(ctx, item.Path, before)
}

// giveUp records which artifacts and archives cannot be had any more once the things are gone, and returns those that nobody
// needs after all: a revision may have come to need one since the look at the records.
func (s *Service) giveUp(ctx context.Context, items []slipway.Removal) (free []slipway.Removal, err error) {
	running, err := s.runningHere()
	if err != nil {
		return nil, err
	}
	err = s.store.Update(ctx, func(tx slipway.Tx) error {
		free = nil
		held, err := s.holdings(tx, running)
		if err != nil {
			return err
		}
		blobs := map[string]bool{}
		for _, item := range items {
			if held.Needed[item.Path] != "" {
				continue
			}
			free = append(free, item)
			blobs[item.Path] = item.Kind == slipway.ShelfBlob
		}
		return errors.Join(s.giveUpArtifacts(tx, free, held), s.giveUpUploads(tx, blobs))
	})
	return free, err
}

func (s *Service) giveUpArtifacts(tx slipway.Tx, free []slipway.Removal, held slipway.Holdings) error {
	all, err := tx.Artifacts()
	if err != nil {
		return err
	}
	known, made := map[string]slipway.Artifact{}, map[string][]string{} // artifacts by the place of an archive of theirs
	for _, a := range all {
		known[a.Digest] = a
		for _, p := range a.Parts {
			made[blobPlace(p.Blob)] = append(made[blobPlace(p.Blob)], a.Digest)
		}
	}
	for _, item := range free {
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
}

// giveUpUploads records that archives go: one that a revision names stays on record, as its digest tells what it was.
func (s *Service) giveUpUploads(tx slipway.Tx, going map[string]bool) error {
	uploads, err := tx.Uploads()
	if err != nil {
		return err
	}
	var named map[string]bool
	for _, u := range uploads {
		if !u.Stored() || !going[blobPlace(u.Digest)] {
			continue
		}
		if named == nil {
			if named, err = archivesNamed(tx); err != nil {
				return err
			}
		}
		if u.CollectedAt = s.clock(); named[u.DeploymentID+" "+u.ObjectPath] {
			err = tx.PutUpload(u)
		} else {
			err = tx.DeleteUpload(u.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// archivesNamed lists deployment and path of the archives that revisions name.
func archivesNamed(tx slipway.Tx) (map[string]bool, error) {
	revisions, err := tx.Revisions(slipway.RevisionQuery{})
	named := map[string]bool{}
	for _, r := range revisions {
		named[r.DeploymentID+" "+text(r.SourceRevisionConfig.SourceTarballPath)] = true
	}
	return named, err
}

// forget removes records that nobody can ask for any more: artifacts that no revision names, and slots of uploads whose
// address expired unused.
func (s *Service) forget(ctx context.Context) error {
	artifacts, slots, err := []string{}, []string{}, error(nil)
	look := func(tx slipway.Tx) error {
		if artifacts, err = strayArtifacts(tx); err != nil {
			return err
		}
		slots, err = s.expiredSlots(tx)
		return err
	}
	if err := s.store.View(ctx, look); err != nil || len(artifacts)+len(slots) == 0 {
		return err
	}
	return s.store.Update(ctx, func(tx slipway.Tx) error {
		if err := look(tx); err != nil {
			return err
		}
		for _, digest := range artifacts {
			if err := tx.DeleteArtifact(digest); err != nil {
				return err
			}
		}
		for _, id := range slots {
			if err := tx.DeleteUpload(id); err != nil {
				return err
			}
		}
		return nil
	})
}

func strayArtifacts(tx slipway.Tx) (stray []string, err error) {
	all, err := tx.Artifacts()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	revisions, err := tx.Revisions(slipway.RevisionQuery{})
	named := map[string]bool{}
	for _, r := range revisions {
		named[r.ArtifactDigest] = true
	}
	for _, a := range all {
		if !named[a.Digest] {
			stray = append(stray, a.Digest)
		}
	}
	return stray, err
}

// expiredSlots lists the slots that nothing can come to any more. An upload that began in time may take longer.
func (s *Service) expiredSlots(tx slipway.Tx) (ids []string, err error) {
	uploads, err := tx.Uploads()
	for _, u := range uploads {
		if u.UploadedAt.IsZero() && u.ExpiresAt.Before(s.clock().Add(-blobGrace)) {
			ids = append(ids, u.ID)
		}
	}
	return ids, err
}
