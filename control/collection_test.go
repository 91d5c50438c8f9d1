package control_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/control"
	"github.com/slipway-dev/slipway/control/controltest"
	"github.com/slipway-dev/slipway/shelf"
)

// kept is a world with a shelf in a directory.
type kept struct {
	*world
	root  string
	shelf *shelf.Shelf
	blobs *controltest.Blob
}

func newKept(t *testing.T, limit int64) *kept {
	t.Helper()
	k := &kept{world: newWorld(t), root: t.TempDir()}
	var err error
	if k.shelf, err = shelf.Open(k.root); err != nil {
		t.Fatal(err)
	}
	k.blobs = &controltest.Blob{Clock: k.Now}
	k.With(func(cfg *control.Config, deps *control.Deps) {
		cfg.DiskLimit, deps.Shelf, deps.Blob = limit, k.shelf, k.blobs
	})
	return k
}

func (k *kept) app(name string) control.Deployment {
	k.t.Helper()
	d, err := k.Create(k.t.Context(), k.Admin, slipway.DeploymentCreate{Name: name, Source: slipway.SourceInternalSource})
	return must(k.t, d, err)
}

// upload brings an archive and returns its path.
func (k *kept) upload(id, content string) string {
	k.t.Helper()
	slot, err := k.NewUpload(k.t.Context(), k.Admin, id)
	must(k.t, slot, err)
	address, query, _ := strings.Cut(slot.URL, "?expires=")
	expires, signature, _ := strings.Cut(query, "&signature=")
	must(k.t, 0, k.AcceptUpload(k.t.Context(), filepath.Base(address), expires, signature, -1, strings.NewReader("\x1f\x8b"+content)))
	return slot.ObjectPath
}

func (k *kept) deployed(id, path string) (control.Deployment, error) {
	return k.Patch(k.t.Context(), k.Admin, id, slipway.DeploymentPatch{
		SourceRevisionConfig: slipway.SourceRevisionConfig{SourceTarballPath: &path, AgentgraphConfigPath: p("langgraph.json")},
	})
}

// build makes a bundle of so many bytes for the next revision and rolls it out.
func (k *kept) build(bytes int) slipway.BuildJob {
	k.t.Helper()
	job := k.claim(control.LocalBuilder + "1")
	digest := "sha256:" + strings.Repeat("0", 64-len(k.NextID())) + strings.ReplaceAll(job.RevisionID, "-", "0")
	dir := filepath.Join(k.root, slipway.BundlePath("bundles", digest))
	raw, _ := json.Marshal(slipway.Bundle{Shared: []string{}})
	must(k.t, 0, os.MkdirAll(dir, 0o755))
	must(k.t, 0, os.WriteFile(filepath.Join(dir, slipway.BundleFile), raw, 0o644))
	must(k.t, 0, os.WriteFile(filepath.Join(dir, "code"), make([]byte, bytes), 0o644))
	now := k.Now()
	must(k.t, 0, os.Chtimes(dir, now, now))
	must(k.t, 0, k.Complete(k.t.Context(), job, slipway.BuildResult{ArtifactDigest: digest}))
	k.Advance(time.Second)
	return job
}

// live takes the candidate of a deployment live.
func (k *kept) live(id string) {
	k.t.Helper()
	state, err := k.Desired(k.t.Context(), "")
	must(k.t, 0, err)
	for _, d := range state.Deployments {
		if d.DeploymentID == id && d.Candidate != nil {
			for _, status := range []slipway.RevisionStatus{slipway.Deploying, slipway.Deployed} {
				must(k.t, 0, k.Report(k.t.Context(), slipway.Report{DeploymentID: id, Generation: d.Generation, RevisionID: d.Candidate.RevisionID, Status: status}))
			}
		}
	}
}

func (k *kept) collected(in control.CollectionRequest) (out []string) {
	k.t.Helper()
	done, err := k.Collect(k.t.Context(), in)
	must(k.t, 0, err)
	for _, r := range done.Removals {
		out = append(out, r.Why)
	}
	return out
}

func TestUnusedUploadsAreSwept(t *testing.T) {
	t.Parallel()
	k := newKept(t, 0)
	d := k.app("desk")
	unused, used := k.upload(d.ID, "never used"), k.upload(d.ID, "used")
	slot, err := k.NewUpload(t.Context(), k.Admin, d.ID) // nothing ever comes to it
	must(t, slot, err)
	_, err = k.deployed(d.ID, used)
	must(t, 0, err)
	k.build(1)
	k.live(d.ID)
	for _, wait := range []time.Duration{time.Minute, 167 * time.Hour} {
		k.Advance(wait)
		if got := k.collected(control.CollectionRequest{}); len(got) > 0 {
			t.Errorf("before its time goes what has the reasons %q", got)
		}
	}
	k.Advance(2 * time.Hour)
	if got, want := k.collected(control.CollectionRequest{DryRun: true}), []string{"it was uploaded and never used"}; !slices.Equal(got, want) {
		t.Errorf("a dry run says %q, want %q", got, want)
	}
	if got := k.collected(control.CollectionRequest{}); len(got) != 1 {
		t.Errorf("went %q, want the one upload", got)
	}
	if _, err := k.deployed(d.ID, unused); slipway.ErrorCode(err) != slipway.CodeInvalid {
		t.Errorf("a swept upload: %v, want CodeInvalid", err)
	}
	if _, err := k.deployed(d.ID, used); err != nil {
		t.Errorf("the upload of the latest revision: %v", err)
	}
	if _, err := k.deployed(d.ID, slot.ObjectPath); err == nil || !strings.Contains(err.Error(), "was not issued") {
		t.Errorf("a slot that expired: %v, want it forgotten", err)
	}
}

// A failed build is tried again from the same archive, however much is collected in between.
func TestTheSourceOfAFailedBuildStays(t *testing.T) {
	t.Parallel()
	k := newKept(t, 0)
	d := k.app("desk")
	_, err := k.deployed(d.ID, k.upload(d.ID, "good"))
	must(t, 0, err)
	k.build(1)
	k.live(d.ID)
	_, err = k.deployed(d.ID, k.upload(d.ID, "bad"))
	must(t, 0, err)
	job := k.claim("b")
	must(t, 0, k.Fail(t.Context(), job, "no module named requests"))
	k.Advance(200 * time.Hour)
	k.collected(control.CollectionRequest{All: true})
	r, err := k.Revise(t.Context(), k.Admin, d.ID, slipway.DeploymentPatch{})
	must(t, r, err)
	if again := k.claim("b"); again.RevisionID != r.ID || again.TarballDigest != job.TarballDigest {
		t.Errorf("the next build is %+v, want %s of %s", again, r.ID, job.TarballDigest)
	}
}

// What was given up, with its source, is refused when it is asked for; nothing changes by that.
func TestRedeployOfWhatIsGoneIsRefused(t *testing.T) {
	t.Parallel()
	k := newKept(t, 0)
	k.With(func(cfg *control.Config, _ *control.Deps) { cfg.KeepRevisions = 1 })
	d := k.app("desk")
	var ids []string
	for _, content := range []string{"one", "two", "three"} {
		_, err := k.deployed(d.ID, k.upload(d.ID, content))
		must(t, 0, err)
		ids = append(ids, k.build(1).RevisionID)
		k.live(d.ID)
	}
	k.Advance(3 * time.Hour)
	want := "no running or redeployable revision needs it"
	if got := k.collected(control.CollectionRequest{All: true}); len(got) != 4 || got[0] != want {
		t.Errorf("went %q, want two bundles and their archives", got)
	}
	_, err := k.Redeploy(t.Context(), k.Admin, d.ID, ids[0])
	if slipway.ErrorCode(err) != slipway.CodeBadRequest || !strings.Contains(err.Error(), "upload it again") {
		t.Errorf("redeploying what is gone: %v", err)
	}
	after, err := k.Get(t.Context(), k.Admin, d.ID)
	must(t, 0, err)
	if after.LatestRevisionID != ids[2] {
		t.Errorf("the latest revision is %s, want %s", after.LatestRevisionID, ids[2])
	}
	k.redeploy(d.ID, ids[2])
}

// An archive that is built again and again is in use.
func TestABuildIsAUseOfItsArchive(t *testing.T) {
	t.Parallel()
	k := newKept(t, 0)
	k.With(func(cfg *control.Config, _ *control.Deps) { cfg.KeepRevisions = 1 })
	d := k.app("desk")
	first := k.upload(d.ID, "one")
	k.Advance(160 * time.Hour)
	_, err := k.deployed(d.ID, first)
	must(t, 0, err)
	k.build(1)
	k.live(d.ID)
	_, err = k.deployed(d.ID, k.upload(d.ID, "two"))
	must(t, 0, err)
	k.build(1)
	k.live(d.ID)
	k.Advance(20 * time.Hour) // 180 since the upload, 20 since the build
	if got := k.collected(control.CollectionRequest{}); len(got) > 0 {
		t.Errorf("what was built lately goes: %q", got)
	}
	k.Advance(150 * time.Hour)
	if got, want := k.collected(control.CollectionRequest{}), []string{"it is the source of revisions that need not be built again"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBuildsAreRefusedWhileWhatMustBeKeptExceedsTheLimit(t *testing.T) {
	t.Parallel()
	k := newKept(t, 1<<20)
	d := k.app("desk")
	_, err := k.deployed(d.ID, k.upload(d.ID, "one"))
	must(t, 0, err)
	k.build(1 << 20) // takes all there is
	k.live(d.ID)
	other := k.app("other")
	_, err = k.deployed(other.ID, k.upload(other.ID, "two"))
	must(t, 0, err)
	third := k.app("third")
	_, err = k.deployed(third.ID, k.upload(third.ID, "three"))
	must(t, 0, err)
	claimed := make(chan slipway.BuildJob, 1)
	go func() { // it refuses the two and waits for one that has room
		job, _ := k.Claim(t.Context(), "b")
		claimed <- job
	}()
	refused := func(id string) slipway.Revision {
		t.Helper()
		for {
			got, err := k.Get(t.Context(), k.Admin, id)
			must(t, 0, err)
			r, err := k.Revision(t.Context(), k.Admin, id, got.LatestRevisionID)
			if must(t, 0, err); r.Status.Terminal() {
				return r
			}
			select {
			case job := <-claimed:
				t.Fatalf("a build without room begins: %+v", job)
			default:
			}
		}
	}
	for _, id := range []string{other.ID, third.ID} {
		r := refused(id)
		if want := "no disk is left to build: what running and redeployable revisions need takes 0.00 GiB, and --disk-limit is 0.00 GiB"; r.Status != slipway.BuildFailed || !strings.HasPrefix(r.StatusReason, want) {
			t.Errorf("%s: %q", r.Status, r.StatusReason)
		}
		for _, remedy := range []string{"delete deployments", "--disk-limit", "--keep-revisions"} {
			if !strings.Contains(r.StatusReason, remedy) {
				t.Errorf("%q does not say what to do: %s", r.StatusReason, remedy)
			}
		}
	}
	if got, _ := k.Get(t.Context(), k.Admin, d.ID); got.ActiveRevisionID == "" {
		t.Error("what served does not any more")
	}
	must(t, 0, k.Delete(t.Context(), k.Admin, d.ID, control.Deletion{}))
	must(t, 0, k.Purge(t.Context(), k.Admin, d.ID))
	k.sweep()
	state, err := k.Desired(t.Context(), "")
	must(t, 0, err)
	for _, gone := range state.Deployments {
		if gone.DeploymentID == d.ID {
			must(t, 0, k.Report(t.Context(), slipway.Report{DeploymentID: d.ID, Generation: gone.Generation, Gone: true}))
		}
	}
	r, err := k.Revise(t.Context(), k.Admin, other.ID, slipway.DeploymentPatch{})
	must(t, 0, err)
	if job := <-claimed; job.RevisionID != r.ID {
		t.Errorf("built is %q, want %s: there is room again", job.RevisionID, r.ID)
	}
}

// What only goes because a build runs, and what could go, does not count against a build.
func TestCachesDoNotCountAgainstTheLimit(t *testing.T) {
	t.Parallel()
	k := newKept(t, 1<<20)
	d := k.app("desk")
	for _, at := range []string{"cache/npm", "layers/node-1", "bundles/" + strings.Repeat("ab", 32)} {
		must(t, 0, os.MkdirAll(filepath.Join(k.root, at), 0o755))
		must(t, 0, os.WriteFile(filepath.Join(k.root, at, "x"), make([]byte, 1<<20), 0o644))
	}
	_, err := k.deployed(d.ID, k.upload(d.ID, "one"))
	must(t, 0, err)
	if job := k.claim("b"); job.DeploymentID != d.ID {
		t.Errorf("claimed %+v", job)
	}
}

func TestNothingIsLeftOfAPurgedDeployment(t *testing.T) {
	t.Parallel()
	k := newKept(t, 0)
	d := k.app("desk")
	_, err := k.deployed(d.ID, k.upload(d.ID, "one"))
	must(t, 0, err)
	k.build(1)
	k.live(d.ID)
	k.upload(d.ID, "unused")
	k.Advance(3 * time.Hour)
	must(t, 0, k.Delete(t.Context(), k.Admin, d.ID, control.Deletion{}))
	if got := k.collected(control.CollectionRequest{}); len(got) > 0 {
		t.Errorf("it can be restored, but there goes %q", got)
	}
	must(t, 0, k.Purge(t.Context(), k.Admin, d.ID))
	k.sweep()
	k.gone()
	want := slices.Repeat([]string{"nothing refers to it any more"}, 3)
	if got := k.collected(control.CollectionRequest{}); !slices.Equal(got, want) {
		t.Errorf("went %q, want bundle and archives", got)
	}
	if all, err := k.shelf.List(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("left: %v %v", all, err)
	}
}
