// Package feedtest is the conformance suite that every slipway.Feed passes: the one in the control service's process and
// the one over HTTP.
package feedtest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
)

// Bench is a control service with one data plane. What it does is done when it returns.
type Bench struct {
	Feed slipway.Feed
	// Create makes a deployment there, of an image, with the secret TOKEN=canary-1 and one CPU, and returns its id.
	Create func(t *testing.T, name string) string
	// Elsewhere makes a deployment of another data plane.
	Elsewhere func(t *testing.T, name string)
	// Change makes another revision of it.
	Change func(t *testing.T, id string)
	// Delete takes it out of sight; Purge removes a deleted one for good.
	Delete, Purge func(t *testing.T, id string)
	// Active is the number of the active revision, 0 without one; Latest the status of the newest.
	Active func(t *testing.T, id string) int64
	Latest func(t *testing.T, id string) (status slipway.RevisionStatus, reason string)
	// Flush makes what AppendLogs took durable.
	Flush func(ctx context.Context) error
	// Lines are the deployment's deploy log, oldest first.
	Lines func(t *testing.T, id string) []string
	// Restart replaces the control service by a new one on the same records, and returns the data plane's feed to it.
	Restart func(t *testing.T) slipway.Feed
}

// patience bounds what hangs only if it is broken.
const patience = 20 * time.Second

// Run runs the suite; open makes a new bench.
func Run(t *testing.T, open func(t *testing.T) *Bench) {
	for name, test := range map[string]func(t *testing.T, b *Bench){
		"the whole state":          wholeState,
		"only what changed":        onlyWhatChanged,
		"waiting ends with ctx":    waitingEnds,
		"a change ends waiting":    changeEndsWaiting,
		"an unknown cursor":        unknownCursor,
		"a rollout":                rollout,
		"a failure":                failure,
		"stale reports":            staleReports,
		"retired, deleted, absent": deletion,
		"log lines in order":       logLines,
		"a restart":                restart,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func (b *Bench) desired(t *testing.T, cursor string) slipway.DesiredState {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	state, err := b.Feed.Desired(ctx, cursor)
	if err != nil {
		t.Fatalf("desired state since %q: %v", cursor, err)
	}
	return state
}

// one returns the deployment's part of the state.
func one(t *testing.T, state slipway.DesiredState, id string) slipway.DesiredDeployment {
	t.Helper()
	i := slices.IndexFunc(state.Deployments, func(d slipway.DesiredDeployment) bool { return d.DeploymentID == id })
	if i < 0 {
		t.Fatalf("the state lacks deployment %s: %+v", id, state)
	}
	return state.Deployments[i]
}

func (b *Bench) report(t *testing.T, r slipway.Report, want slipway.Code) {
	t.Helper()
	if err := b.Feed.Report(t.Context(), r); slipway.ErrorCode(err) != want {
		t.Fatalf("report %+v: %v, want code %q", r, err, want)
	}
}

func wholeState(t *testing.T, b *Bench) {
	if state := b.desired(t, ""); state.Partial || len(state.Deployments) != 0 || state.Cursor == "" {
		t.Errorf("state of nothing = %+v, want a whole one with a cursor", state)
	}
	id := b.Create(t, "desk")
	b.Elsewhere(t, "not-mine")
	state := b.desired(t, "")
	if state.Partial || len(state.Deployments) != 1 {
		t.Fatalf("state = %+v, want the one deployment, whole", state)
	}
	d := one(t, state, id)
	if d.Name != "desk" || d.TenantID == "" || d.Generation == 0 || d.Active != nil || d.Candidate == nil || d.Retired || d.Deleted {
		t.Fatalf("deployment = %+v, want a candidate and nothing active", d)
	}
	c := d.Candidate
	if c.RevisionID == "" || c.Number != 1 || c.Image == "" || c.ArtifactDigest != "" || c.Env["TOKEN"] != "canary-1" || c.Broken != "" {
		t.Errorf("blueprint = %+v", c)
	}
	if c.Env["LANGSMITH_DEPLOYMENT_NAME"] != "desk" || !slices.Contains(c.Redact, "canary-1") {
		t.Errorf("environment = %v, redacted = %v", c.Env, c.Redact)
	}
	if c.Resources == nil || c.Resources.CPU == nil || *c.Resources.CPU != 1 {
		t.Errorf("resources = %+v, want one CPU", c.Resources)
	}
}

func onlyWhatChanged(t *testing.T, b *Bench) {
	desk, _ := b.Create(t, "desk"), b.Create(t, "shop")
	before := b.desired(t, "")
	b.Change(t, desk)
	after := b.desired(t, before.Cursor)
	if !after.Partial || len(after.Deployments) != 1 || len(after.Absent) != 0 || after.Cursor == before.Cursor {
		t.Errorf("after a change = %+v, want the changed deployment alone", after)
	}
	if got, old := one(t, after, desk).Generation, one(t, before, desk).Generation; got <= old {
		t.Errorf("generation = %d after %d, want a later one", got, old)
	}
}

func waitingEnds(t *testing.T, b *Bench) {
	b.Create(t, "desk")
	state := b.desired(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := b.Feed.Desired(ctx, state.Cursor)
		ended <- err
	}()
	cancel()
	within(t, "the end of a wait", ended, func(err error) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a wait that was ended = %v, want the context's error", err)
		}
	})
}

func within[T any](t *testing.T, what string, c <-chan T, check func(T)) {
	t.Helper()
	select {
	case v := <-c:
		check(v)
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
	}
}

func changeEndsWaiting(t *testing.T, b *Bench) {
	state := b.desired(t, "")
	found := make(chan slipway.DesiredState, 1)
	go func() {
		next, err := b.Feed.Desired(t.Context(), state.Cursor)
		if err != nil {
			t.Errorf("wait: %v", err)
		}
		found <- next
	}()
	b.Elsewhere(t, "not-mine") // wakes nobody here
	id := b.Create(t, "desk")
	within(t, "the new deployment", found, func(next slipway.DesiredState) { one(t, next, id) })
}

func unknownCursor(t *testing.T, b *Bench) {
	id := b.Create(t, "desk")
	for _, cursor := range []string{"of-another-service.7", "?", "-1"} {
		if state := b.desired(t, cursor); state.Partial {
			t.Errorf("since the unknown cursor %q = %+v, want the whole state", cursor, state)
		} else {
			one(t, state, id)
		}
	}
}

// begin makes a deployment and reports its first revision so far.
func (b *Bench) begin(t *testing.T, statuses ...slipway.RevisionStatus) (id string, r slipway.Report) {
	t.Helper()
	id = b.Create(t, "desk")
	for _, status := range statuses {
		d := one(t, b.desired(t, ""), id)
		r = slipway.Report{DeploymentID: id, Generation: d.Generation, RevisionID: d.Candidate.RevisionID, Status: status}
		b.report(t, r, "")
	}
	return id, r
}

func rollout(t *testing.T, b *Bench) {
	id, _ := b.begin(t, slipway.Deploying)
	if status, _ := b.Latest(t, id); status != slipway.Deploying || b.Active(t, id) != 0 {
		t.Errorf("reported DEPLOYING: status %s, active %d", status, b.Active(t, id))
	}
	d := one(t, b.desired(t, ""), id)
	r := slipway.Report{DeploymentID: id, Generation: d.Generation, RevisionID: d.Candidate.RevisionID, Status: slipway.Deployed}
	b.report(t, r, "")
	if status, _ := b.Latest(t, id); status != slipway.Deployed || b.Active(t, id) != 1 {
		t.Errorf("reported DEPLOYED: status %s, active %d", status, b.Active(t, id))
	}
	if d = one(t, b.desired(t, ""), id); d.Active == nil || d.Active.RevisionID != r.RevisionID || d.Candidate != nil {
		t.Errorf("afterwards = %+v, want it active and no candidate", d)
	}
	b.Change(t, id)
	if d = one(t, b.desired(t, ""), id); d.Active == nil || d.Active.Number != 1 || d.Candidate == nil || d.Candidate.Number != 2 {
		t.Errorf("with another revision = %+v, want both", d)
	}
}

func failure(t *testing.T, b *Bench) {
	id, r := b.begin(t, slipway.Deploying)
	d := one(t, b.desired(t, ""), id)
	r.Generation, r.Status, r.Reason = d.Generation, slipway.DeployFailed, "exited with code 3; last log lines: oh"
	b.report(t, r, "")
	if status, reason := b.Latest(t, id); status != slipway.DeployFailed || reason != r.Reason {
		t.Errorf("status = %s %q", status, reason)
	}
	if d := one(t, b.desired(t, ""), id); d.Candidate != nil || d.Active != nil {
		t.Errorf("after the failure = %+v, want nothing to run", d)
	}
}

func staleReports(t *testing.T, b *Bench) {
	id := b.Create(t, "desk")
	d := one(t, b.desired(t, ""), id)
	b.Change(t, id)
	old := slipway.Report{DeploymentID: id, Generation: d.Generation, RevisionID: d.Candidate.RevisionID, Status: slipway.Deploying}
	b.report(t, old, slipway.CodeStale)
	unknown := "01900000-0000-7000-8000-999999999999"
	b.report(t, slipway.Report{DeploymentID: unknown, Generation: 1, Gone: true}, slipway.CodeStale)
	now := one(t, b.desired(t, ""), id).Generation
	b.report(t, slipway.Report{DeploymentID: id, Generation: now, RevisionID: unknown, Status: slipway.Deployed}, slipway.CodeStale)
}

func deletion(t *testing.T, b *Bench) {
	id, _ := b.begin(t, slipway.Deploying, slipway.Deployed)
	b.Delete(t, id)
	state := b.desired(t, "")
	d := one(t, state, id)
	if !d.Retired || d.Deleted || d.Active != nil || d.Candidate != nil {
		t.Fatalf("deleted = %+v, want it retired", d)
	}
	b.report(t, slipway.Report{DeploymentID: id, Generation: d.Generation, Gone: true}, "")
	b.Purge(t, id)
	state = b.desired(t, state.Cursor)
	if d = one(t, state, id); !d.Deleted || d.Retired {
		t.Fatalf("purged = %+v, want it deleted", d)
	}
	b.report(t, slipway.Report{DeploymentID: id, Generation: d.Generation, Gone: true}, "")
	if state = b.desired(t, state.Cursor); !state.Partial || !slices.Equal(state.Absent, []string{id}) {
		t.Errorf("gone = %+v, want it absent", state)
	}
	if state = b.desired(t, ""); len(state.Deployments) != 0 {
		t.Errorf("the whole state afterwards = %+v, want nothing", state)
	}
}

func logLines(t *testing.T, b *Bench) {
	id := b.Create(t, "desk")
	revision := one(t, b.desired(t, ""), id).Candidate.RevisionID
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	var want []string
	for i := range 5 {
		text := "line " + string(rune('a'+i))
		want = append(want, text)
		line := slipway.LogEntry{DeploymentID: id, RevisionID: revision, Kind: slipway.LogDeploy, At: at, Level: "INFO", Message: text}
		if err := b.Feed.AppendLogs(t.Context(), []slipway.LogEntry{line}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.Lines(t, id); !slices.Equal(got, want) {
		t.Errorf("lines = %q, want %q", got, want)
	}
}

func restart(t *testing.T, b *Bench) {
	id, r := b.begin(t, slipway.Deploying)
	before := b.desired(t, "")
	b.Feed = b.Restart(t)
	after := b.desired(t, before.Cursor)
	if after.Partial {
		t.Errorf("with a cursor from before the restart = %+v, want the whole state", after)
	}
	if d := one(t, after, id); d.Candidate == nil || d.Candidate.RevisionID != r.RevisionID {
		t.Errorf("after the restart = %+v, want the same candidate", d)
	}
	d := one(t, after, id)
	b.report(t, slipway.Report{DeploymentID: id, Generation: d.Generation, RevisionID: r.RevisionID, Status: slipway.Deployed}, "")
	next := b.desired(t, after.Cursor)
	if d := one(t, next, id); d.Active == nil || d.Candidate != nil {
		t.Errorf("after the report = %+v, want it active", d)
	}
}
