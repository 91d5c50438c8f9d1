package control_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/control"
	"github.com/slipway-dev/slipway/control/controltest"
	"github.com/slipway-dev/slipway/seal"
	"github.com/slipway-dev/slipway/shelf"
)

// history is an installation that lives through deployments, builds and collections. Its shelf is a real directory.
type history struct {
	*controltest.World
	store *controltest.Store
	blobs *controltest.Blob
	root  string
	shelf *shelf.Shelf

	names   int
	builds  map[string]time.Time        // when builds under way here began, by revision
	jobs    map[string]slipway.BuildJob // builds under way, here and elsewhere
	running map[string]bool             // revisions that have processes here
}

const keepInHistories = 2

func newHistory(outer *testing.T, t *rapid.T) *history {
	key, err := seal.New(bytes.Repeat([]byte{7}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.MkdirTemp(outer.TempDir(), "h")
	if err != nil {
		t.Fatal(err)
	}
	h := &history{
		store: controltest.NewStore(), root: root, builds: map[string]time.Time{}, jobs: map[string]slipway.BuildJob{}, running: map[string]bool{},
	}
	h.World = controltest.New(outer, h.store, key, "http://slipway.test")
	h.blobs = &controltest.Blob{Clock: h.Now}
	h.restart(t, 0)
	return h
}

// restart is a crash and a new start: builds of this machine are lost, processes live on.
func (h *history) restart(t *rapid.T, limit int64) {
	var err error
	if h.shelf, err = shelf.Open(h.root); err != nil {
		t.Fatal(err)
	}
	for id := range h.builds {
		delete(h.jobs, id)
	}
	clear(h.builds)
	h.With(func(cfg *control.Config, deps *control.Deps) {
		cfg.KeepRevisions, cfg.DiskLimit = keepInHistories, limit
		deps.Shelf, deps.Blob, deps.Busy = h.shelf, h.blobs, h.busy
		deps.Running = func() ([]string, error) { return slices.Collect(maps.Keys(h.running)), nil }
	})
	if err := h.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func (h *history) busy() (oldest time.Time) {
	for _, at := range h.builds {
		if oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	return oldest
}

// records is what the store holds.
type records struct {
	deployments []slipway.Deployment
	revisions   []slipway.Revision // newest first
	uploads     []slipway.Upload
	artifacts   map[string]slipway.Artifact
}

func (h *history) read(t *rapid.T) (r records) {
	r.artifacts = map[string]slipway.Artifact{}
	err := h.store.View(context.Background(), func(tx slipway.Tx) (err error) {
		var statuses []string
		for _, s := range []slipway.DeploymentStatus{
			slipway.DeploymentAwaitingDatabase, slipway.DeploymentReady, slipway.DeploymentUnused, slipway.DeploymentUnknown, slipway.DeploymentAwaitingDelete,
		} {
			statuses = append(statuses, string(s))
		}
		if r.deployments, err = tx.Deployments(slipway.DeploymentQuery{Statuses: statuses}); err != nil {
			return err
		}
		if r.revisions, err = tx.Revisions(slipway.RevisionQuery{}); err != nil {
			return err
		}
		if r.uploads, err = tx.Uploads(); err != nil {
			return err
		}
		all, err := tx.Artifacts()
		for _, a := range all {
			r.artifacts[a.Digest] = a
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(r.revisions, func(a, b slipway.Revision) int { return int(b.Number - a.Number) })
	return r
}

// nothing ends an action that has nothing to act on.
type nothing string

func one[T any](t *rapid.T, what string, of []T) T {
	if len(of) == 0 {
		panic(nothing(what))
	}
	return rapid.SampledFrom(of).Draw(t, what)
}

// act does what an action does, if there is something to do it to.
func act(t *rapid.T, action func(*rapid.T)) {
	defer func() {
		if reason := recover(); reason != nil {
			if _, none := reason.(nothing); !none {
				panic(reason)
			}
		}
	}()
	action(t)
}

func (h *history) visible(t *rapid.T) slipway.Deployment {
	return one(t, "deployment", slices.DeleteFunc(h.read(t).deployments, func(d slipway.Deployment) bool { return d.Status == slipway.DeploymentAwaitingDelete }))
}

func (h *history) deleted(t *rapid.T) slipway.Deployment {
	return one(t, "deleted", slices.DeleteFunc(h.read(t).deployments, func(d slipway.Deployment) bool { return d.Status != slipway.DeploymentAwaitingDelete }))
}

// allowed lets through what a user may be told.
func allowed(t *rapid.T, err error, codes ...slipway.Code) {
	if err != nil && !slices.Contains(codes, slipway.ErrorCode(err)) {
		t.Fatal(err)
	}
}

func (h *history) create(t *rapid.T) {
	if len(h.read(t).deployments) >= 3 {
		panic(nothing("room"))
	}
	h.names++
	_, err := h.Create(context.Background(), h.Admin, slipway.DeploymentCreate{
		Name: fmt.Sprint("desk", h.names), Source: slipway.SourceInternalSource,
		SourceConfig: slipway.SourceConfig{}, SourceRevisionConfig: slipway.SourceRevisionConfig{},
	})
	allowed(t, err)
}

func (h *history) upload(t *rapid.T) { h.uploadTo(t, h.visible(t)) }

func (h *history) uploadTo(t *rapid.T, d slipway.Deployment) {
	slot, err := h.NewUpload(context.Background(), h.Admin, d.ID)
	allowed(t, err)
	if rapid.IntRange(0, 9).Draw(t, "never comes") == 9 {
		return
	}
	address, query, _ := strings.Cut(slot.URL, "?expires=")
	expires, signature, _ := strings.Cut(query, "&signature=")
	content := "\x1f\x8b" + rapid.SampledFrom([]string{"one", "two", "three", "four", "five", "six", "seven"}).Draw(t, "content")
	allowed(t, h.AcceptUpload(context.Background(), filepath.Base(address), expires, signature, int64(len(content)), strings.NewReader(content)))
}

func (h *history) patch(t *rapid.T) { h.patchTo(t, one(t, "upload", h.read(t).uploads)) }

func (h *history) patchTo(t *rapid.T, u slipway.Upload) {
	_, err := h.Patch(context.Background(), h.Admin, u.DeploymentID, slipway.DeploymentPatch{
		SourceRevisionConfig: slipway.SourceRevisionConfig{SourceTarballPath: p(u.ObjectPath), AgentgraphConfigPath: p("langgraph.json")},
	})
	if err == nil && !u.Stored() {
		t.Errorf("an archive that is not stored was taken: %+v", u)
	}
	allowed(t, err, slipway.CodeInvalid, slipway.CodeNotFound)
}

func (h *history) redeploy(t *rapid.T) {
	r := one(t, "revision", h.read(t).revisions)
	before := h.read(t)
	why := h.needed(before)[r.ID]
	d, err := h.Redeploy(context.Background(), h.Admin, r.DeploymentID, r.ID)
	allowed(t, err, slipway.CodeBadRequest, slipway.CodeNotFound)
	for _, made := range h.read(t).revisions {
		if err == nil && why && r.ArtifactDigest != "" && made.ID == d.LatestRevisionID && made.ArtifactDigest != r.ArtifactDigest {
			t.Errorf("redeploying %s, which was to stay, builds again", r.ID)
		}
	}
}

func (h *history) claimOne(t *rapid.T) {
	waits := func(r slipway.Revision) bool { return r.Status != slipway.AwaitingBuild }
	if len(slices.DeleteFunc(h.read(t).revisions, waits)) == 0 {
		panic(nothing("to build"))
	}
	owner := rapid.SampledFrom([]string{control.LocalBuilder + "1", "elsewhere"}).Draw(t, "owner")
	began := h.Now()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	job, err := h.Claim(ctx, owner)
	allowed(t, err)
	if h.jobs[job.RevisionID] = job; strings.HasPrefix(owner, control.LocalBuilder) {
		h.builds[job.RevisionID] = began
	}
}

func (h *history) job(t *rapid.T) slipway.BuildJob {
	job := h.jobs[one(t, "build", slices.Sorted(maps.Keys(h.jobs)))]
	delete(h.jobs, job.RevisionID)
	return job
}

// made is what a build leaves: a bundle and the layer it shares.
func made(job slipway.BuildJob) (digest, layer string) {
	sum := sha256.Sum256([]byte("bundle of " + job.TarballDigest))
	return "sha256:" + hex.EncodeToString(sum[:]), "layers/node-" + job.TarballDigest[len(job.TarballDigest)-1:]
}

// place puts a thing on the shelf unless it is there, and counts as a use.
func (h *history) place(t *rapid.T, at string, shared ...string) {
	dir, now := filepath.Join(h.root, at), h.Now()
	raw, _ := json.Marshal(slipway.Bundle{Version: 1, Shared: append([]string{}, shared...)})
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, slipway.BundleFile), raw, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(dir, now, now); err != nil {
		t.Fatal(err)
	}
}

func (h *history) completeOne(t *rapid.T) {
	job := h.job(t)
	if job.TarballDigest == "" {
		t.Fatalf("a build without a source: %+v", job)
	}
	digest, layer := made(job)
	result := slipway.BuildResult{ArtifactDigest: digest}
	if _, local := h.builds[job.RevisionID]; local {
		if _, err := h.blobs.Open(context.Background(), job.TarballDigest); err != nil {
			t.Errorf("the source of a build is gone: %v", err)
		}
		h.place(t, layer)
		h.place(t, slipway.BundlePath("bundles", digest), layer)
	} else {
		for _, at := range []string{slipway.BundlePath("bundles", digest), layer} {
			blob, size, err := h.blobs.Put(context.Background(), strings.NewReader("archive of "+at), 1<<20)
			allowed(t, err)
			result.Parts = append(result.Parts, slipway.ArtifactPart{Path: at, Blob: blob, Size: size})
		}
	}
	allowed(t, h.Complete(context.Background(), job, result), slipway.CodeStale)
	delete(h.builds, job.RevisionID)
}

func (h *history) failOne(t *rapid.T) {
	job := h.job(t)
	allowed(t, h.Fail(context.Background(), job, "it does not build"), slipway.CodeStale)
	delete(h.builds, job.RevisionID)
}

// rollOut is what a listener does with one deployment.
func (h *history) rollOut(t *rapid.T) {
	state, err := h.Desired(context.Background(), "")
	allowed(t, err)
	d := one(t, "desired", state.Deployments)
	report := slipway.Report{DeploymentID: d.DeploymentID, Generation: d.Generation}
	switch {
	case d.Retired || d.Deleted:
		for _, r := range h.read(t).revisions {
			if r.DeploymentID == d.DeploymentID {
				delete(h.running, r.ID)
			}
		}
		report.Gone = true
	case d.Candidate == nil:
		panic(nothing("to roll out"))
	default:
		h.start(t, *d.Candidate)
		report.RevisionID, report.Status = d.Candidate.RevisionID, slipway.Deploying
		allowed(t, h.Report(context.Background(), report), slipway.CodeStale)
		report.Status = rapid.SampledFrom([]slipway.RevisionStatus{slipway.Deployed, slipway.Deployed, slipway.DeployFailed}).Draw(t, "outcome")
	}
	allowed(t, h.Report(context.Background(), report), slipway.CodeStale)
}

// start runs a revision, fetching its artifact if it was built elsewhere.
func (h *history) start(t *rapid.T, w slipway.Blueprint) {
	if !h.there(slipway.BundlePath("bundles", w.ArtifactDigest)) {
		var layer string
		err := h.FetchArtifact(context.Background(), w.ArtifactDigest, func(part slipway.ArtifactPart) error {
			if _, err := h.blobs.Open(context.Background(), part.Blob); err != nil {
				return err
			}
			if strings.HasPrefix(part.Path, "layers/") {
				layer = part.Path
				h.place(t, layer)
				return nil
			}
			h.place(t, part.Path, layer)
			return nil
		})
		if err != nil {
			t.Fatalf("revision %s cannot run: %v", w.RevisionID, err)
		}
	}
	h.running[w.RevisionID] = true
}

// drained ends the processes of a revision that does not serve any more.
func (h *history) drained(t *rapid.T) {
	active := map[string]bool{}
	for _, d := range h.read(t).deployments {
		active[d.ActiveRevisionID] = true
	}
	id := one(t, "running", slices.DeleteFunc(slices.Sorted(maps.Keys(h.running)), func(id string) bool { return active[id] }))
	delete(h.running, id)
}

func (h *history) there(at string) bool {
	_, err := os.Stat(filepath.Join(h.root, at))
	return err == nil
}

// needed says, in other words than the code under test, which revisions must stay.
func (h *history) needed(r records) map[string]bool {
	out, artifacts := maps.Clone(h.running), map[string]int{}
	for _, d := range r.deployments {
		out[d.ActiveRevisionID], out[d.LatestRevisionID] = true, true
	}
	for _, rev := range r.revisions {
		ended := slices.Contains([]slipway.RevisionStatus{
			slipway.Deployed, slipway.CreateFailed, slipway.BuildFailed, slipway.DeployFailed, slipway.Skipped, slipway.Interrupted,
		}, rev.Status)
		if !ended {
			out[rev.ID] = true
		}
		if rev.ArtifactDigest != "" {
			if artifacts[rev.DeploymentID]++; artifacts[rev.DeploymentID] <= keepInHistories {
				out[rev.ID] = true
			}
		}
	}
	return out
}

// runs says whether an artifact can be run: it lies here with what it shares, or its archives do.
func (h *history) runs(t *rapid.T, r records, digest string) error {
	at := slipway.BundlePath("bundles", digest)
	if h.there(at) {
		var bundle slipway.Bundle
		raw, err := os.ReadFile(filepath.Join(h.root, at, slipway.BundleFile))
		if err := json.Unmarshal(raw, &bundle); err != nil {
			t.Fatal(err)
		}
		for _, part := range bundle.Shared {
			if !h.there(part) {
				return fmt.Errorf("%s lacks %s", at, part)
			}
		}
		return err
	}
	parts := r.artifacts[digest].Parts
	for _, part := range parts {
		if _, err := h.blobs.Open(context.Background(), part.Blob); err != nil {
			return fmt.Errorf("%s is not here and its archive is gone", part.Path)
		}
	}
	if parts == nil {
		return fmt.Errorf("%s is nowhere", at)
	}
	return nil
}

// check holds what always is so, in the middle of a crash too: what must stay is there, and what the records call there is.
func (h *history) check(t *rapid.T) {
	r := h.read(t)
	stay, stored := h.needed(r), map[string]slipway.Upload{}
	for _, u := range r.uploads {
		stored[u.DeploymentID+u.ObjectPath] = u
		if _, err := h.blobs.Open(context.Background(), u.Digest); u.Stored() && err != nil {
			t.Errorf("the archive of upload %s is gone, and its record does not say so", u.ID)
		}
	}
	for _, rev := range r.revisions {
		switch known, ok := r.artifacts[rev.ArtifactDigest]; {
		case rev.ArtifactDigest == "":
			path := rev.SourceRevisionConfig.SourceTarballPath
			if path != nil && !rev.Status.Terminal() && !stored[rev.DeploymentID+*path].Stored() {
				t.Errorf("revision %s (%s) has lost its source", rev.ID, rev.Status)
			}
		case ok && known.Collected():
			if stay[rev.ID] {
				t.Errorf("the artifact of revision %s (%s) was given up", rev.ID, rev.Status)
			}
		default:
			if err := h.runs(t, r, rev.ArtifactDigest); err != nil {
				t.Errorf("revision %s (%s, must stay: %v): %v", rev.ID, rev.Status, stay[rev.ID], err)
			}
		}
	}
}

// collectOnce collects and checks that nothing useless is left; crash is a step at which it dies, "" = none.
func (h *history) collectOnce(t *rapid.T, all bool, limit int64, crash string) {
	h.With(func(cfg *control.Config, _ *control.Deps) { cfg.DiskLimit = limit })
	h.shelf.Step = func(step string) {
		if step == crash {
			panic(crashed(crash))
		}
	}
	began := h.Now()
	if died := h.collects(t, all); died {
		h.check(t)
		h.restart(t, 0)
		return
	}
	if since := h.busy(); !since.IsZero() {
		began = since
	}
	h.useless(t, all, limit, began)
	h.With(func(cfg *control.Config, _ *control.Deps) { cfg.DiskLimit = 0 })
}

// crashed is how a collection ends in the middle.
type crashed string

func (h *history) collects(t *rapid.T, all bool) (died bool) {
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case crashed:
			died = true
		default:
			panic(reason)
		}
	}()
	plan, err := h.CollectNow(context.Background(), organisation(h.Admin), control.CollectionRequest{All: all, DryRun: true})
	allowed(t, err)
	done, err := h.CollectNow(context.Background(), organisation(h.Admin), control.CollectionRequest{All: all})
	allowed(t, err)
	if len(plan.Removals) != len(done.Removals) || plan.Freed != done.Freed || plan.Kept != done.Kept {
		t.Errorf("a dry run tells of %+v, then went %+v", plan, done)
	}
	again, err := h.CollectNow(context.Background(), organisation(h.Admin), control.CollectionRequest{All: all})
	allowed(t, err)
	if len(again.Removals) > 0 {
		t.Errorf("a second collection removes %+v", again.Removals)
	}
	return false
}

func organisation(who slipway.Principal) slipway.Principal {
	who.Organisation = true
	return who
}

// useless checks that nothing stays that nobody can ask for.
func (h *history) useless(t *rapid.T, all bool, limit int64, since time.Time) {
	r := h.read(t)
	stay, named, needed := h.needed(r), map[string]bool{}, map[string]bool{}
	archives, source := map[string]string{}, map[string]bool{}
	for _, u := range r.uploads {
		if archives[u.DeploymentID+u.ObjectPath] = u.Digest; u.Stored() {
			named["blobs/"+u.Digest], source["blobs/"+u.Digest] = true, true
		}
	}
	for _, rev := range r.revisions {
		places := []string{slipway.BundlePath("bundles", rev.ArtifactDigest)}
		for _, part := range r.artifacts[rev.ArtifactDigest].Parts {
			places = append(places, "blobs/"+part.Blob, part.Path)
		}
		if path := rev.SourceRevisionConfig.SourceTarballPath; path != nil {
			places = append(places, "blobs/"+archives[rev.DeploymentID+*path])
		}
		for _, at := range places {
			named[at] = true
			needed[at] = needed[at] || stay[rev.ID]
		}
	}
	items, err := h.shelf.List(context.Background())
	allowed(t, err)
	for _, item := range items {
		for _, part := range item.Needs {
			needed[part] = needed[part] || needed[item.Path] || !item.UsedAt.Before(since)
		}
	}
	_ = h.blobs.List(context.Background(), func(b slipway.BlobInfo) error {
		at := b.UsedAt
		if at.After(h.Now().Add(-3 * time.Hour)) {
			at = since
		}
		items = append(items, slipway.Shelved{Path: "blobs/" + b.Digest, Kind: slipway.ShelfBlob, Size: b.Size, UsedAt: at})
		return nil
	})
	var kept int64
	for _, item := range items {
		kept += item.Size
	}
	for _, item := range items {
		if needed[item.Path] || !item.UsedAt.Before(since) {
			continue
		}
		idle := source[item.Path] && item.UsedAt.Before(h.Now().Add(-169*time.Hour))
		if !named[item.Path] && item.Kind != slipway.ShelfLayer || idle || all || limit > 0 && kept > limit {
			t.Errorf("%s stays: named %v, idle %v, all %v, limit %d, kept %d", item.Path, named[item.Path], idle, all, limit, kept)
		}
	}
	for digest := range r.artifacts {
		if !named[slipway.BundlePath("bundles", digest)] {
			t.Errorf("the record of %s stays, which no revision names", digest)
		}
	}
	for _, u := range r.uploads {
		if u.UploadedAt.IsZero() && u.ExpiresAt.Before(h.Now().Add(-3*time.Hour)) {
			t.Errorf("the slot %s stays, which expired at %s", u.ID, u.ExpiresAt)
		}
	}
}

// ship is a deployment from the upload to the roll-out, without anything in between.
func (h *history) ship(t *rapid.T) {
	h.uploadTo(t, h.visible(t))
	uploads := h.read(t).uploads
	h.patchTo(t, slices.MaxFunc(uploads, func(a, b slipway.Upload) int { return strings.Compare(a.ID, b.ID) }))
	for _, action := range []func(*rapid.T){h.claimOne, h.completeOne, h.rollOut} {
		act(t, action)
	}
}

// actions are what happens to an installation; the first are drawn most often.
func (h *history) actions() []func(*rapid.T) {
	ctx := context.Background()
	return []func(*rapid.T){
		h.ship, h.collectAny, h.redeploy, h.ship, h.rollOut, h.completeOne, h.collectAny, h.drained, h.claimOne, h.create, h.upload, h.patch, h.failOne,
		func(t *rapid.T) {
			_, err := h.Revise(ctx, h.Admin, h.visible(t).ID, slipway.DeploymentPatch{})
			allowed(t, err, slipway.CodeInvalid, slipway.CodeConflict, slipway.CodeBadRequest)
		},
		func(t *rapid.T) {
			r := one(t, "revision", h.read(t).revisions)
			_, err := h.Interrupt(ctx, h.Admin, r.DeploymentID, r.ID)
			allowed(t, err, slipway.CodeBadRequest, slipway.CodeNotFound)
		},
		func(t *rapid.T) { allowed(t, h.Delete(ctx, h.Admin, h.visible(t).ID, control.Deletion{})) },
		func(t *rapid.T) {
			_, err := h.Restore(ctx, h.Admin, h.deleted(t).ID)
			allowed(t, err, slipway.CodeBadRequest)
		},
		func(t *rapid.T) {
			allowed(t, h.Purge(ctx, h.Admin, h.deleted(t).ID), slipway.CodeBadRequest)
			_, err := h.Sweep(ctx)
			allowed(t, err)
		},
		func(t *rapid.T) {
			h.Advance(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 3 * time.Hour, 200 * time.Hour}).Draw(t, "for"))
		},
		func(t *rapid.T) { h.restart(t, 0) },
	}
}

func (h *history) collectAny(t *rapid.T) {
	limit := rapid.SampledFrom([]int64{0, 1, 20_000}).Draw(t, "limit")
	crash := rapid.SampledFrom([]string{"", "", shelf.StepTaken, shelf.StepDoomed, shelf.StepRemoving}).Draw(t, "crash")
	h.collectOnce(t, rapid.Bool().Draw(t, "all"), limit, crash)
}

// TestCollectionsInArbitraryHistories lives through random histories of deployments, revisions, builds, leases and
// collections, with crashes in the middle of them: whatever can be asked for is there, and what cannot goes.
func TestCollectionsInArbitraryHistories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		h := newHistory(t, rt)
		h.create(rt)
		actions := h.actions()
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, len(actions)-1), 20, 45).Draw(rt, "history") {
			act(rt, actions[n])
			h.check(rt)
		}
	})
}
