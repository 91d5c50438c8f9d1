package plan_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/plan"
)

// TestMain makes the property tests as thorough as quality.md asks unless the command line says otherwise.
func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", "20000")
	flag.Parse()
	os.Exit(m.Run())
}

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is what a case starts from.
type world struct {
	desired  slipway.DesiredDeployment
	observed []slipway.Observed
}

func active(id string) world {
	return world{desired: slipway.DesiredDeployment{DeploymentID: "d", Name: "desk", Active: blueprint(id)}}
}

func nothingActive() world {
	return world{desired: slipway.DesiredDeployment{DeploymentID: "d", Name: "desk"}}
}

func deleted() world {
	return world{desired: slipway.DesiredDeployment{DeploymentID: "d", Name: "desk", Deleted: true}}
}

func (w world) candidate(id string) world { w.desired.Candidate = blueprint(id); return w }

func (w world) with(id string, p slipway.Phase, change ...func(*slipway.Observed)) world {
	o := slipway.Observed{DeploymentID: "d", RevisionID: id, Phase: p, Endpoint: "http://" + id, StartedAt: now}
	for _, c := range change {
		c(&o)
	}
	w.observed = append(slices.Clone(w.observed), o)
	return w
}

func blueprint(id string) *slipway.Blueprint { return &slipway.Blueprint{RevisionID: id} }

func exited(code int, ago time.Duration, restarts int) func(*slipway.Observed) {
	return func(o *slipway.Observed) { o.ExitCode, o.ExitedAt, o.Restarts = code, now.Add(-ago), restarts }
}

func started(ago time.Duration) func(*slipway.Observed) {
	return func(o *slipway.Observed) { o.StartedAt = now.Add(-ago) }
}

func said(probe string, lines ...string) func(*slipway.Observed) {
	return func(o *slipway.Observed) { o.Probe, o.LastLines = probe, lines }
}

func hopeless(why string) func(*slipway.Observed) {
	return func(o *slipway.Observed) { o.Failure = why }
}

func drainsFor(d time.Duration) func(*slipway.Observed) {
	return func(o *slipway.Observed) { o.DrainUntil = now.Add(d) }
}

func TestNext(t *testing.T) {
	t.Parallel()
	const ready, starting, draining, gone = slipway.PhaseReady, slipway.PhaseStarting, slipway.PhaseDraining, slipway.PhaseExited
	for _, c := range []struct {
		name  string
		world world
		want  []string
	}{
		{"nothing is desired and nothing runs", nothingActive(), []string{"hold"}},
		{"a first candidate is announced and started", nothingActive().candidate("r1"),
			[]string{"hold", "report r1 DEPLOYING", "ensure r1"}},
		{"a starting candidate is waited for until its deadline", active("r1").with("r1", ready).candidate("r2").with("r2", starting, started(time.Minute)),
			[]string{"switch r1", "ensure r1", "report r2 DEPLOYING", "ensure r2", "wait 4m0s"}},
		{"a ready candidate takes the requests and is deployed", active("r1").with("r1", ready).candidate("r2").with("r2", ready),
			[]string{"switch r2", "ensure r1", "report r2 DEPLOYED"}},
		{"the replaced one drains", active("r2").with("r1", ready).with("r2", ready),
			[]string{"switch r2", "ensure r2", "drain r1"}},
		{"the replaced one goes on while its successor is down", active("r2").with("r1", ready).with("r2", gone, exited(1, 0, 0)),
			[]string{"hold r2", "wait 1s"}},
		{"a draining one has its grace", active("r2").with("r1", draining, drainsFor(time.Minute)).with("r2", ready),
			[]string{"switch r2", "ensure r2", "wait 1m0s"}},
		{"a draining one is removed after its grace", active("r2").with("r1", draining, drainsFor(0)).with("r2", ready),
			[]string{"switch r2", "ensure r2", "remove r1"}},
		{"an exited stranger is removed", active("r2").with("r1", gone).with("r2", ready),
			[]string{"switch r2", "ensure r2", "remove r1"}},
		{"a candidate that was interrupted while it started is removed", active("r1").with("r1", ready).with("r2", starting),
			[]string{"switch r1", "ensure r1", "remove r2"}},
		{"a crashing candidate is tried again", active("r1").with("r1", ready).candidate("r2").with("r2", gone, exited(1, 3*time.Second, 1)),
			[]string{"switch r1", "ensure r1", "report r2 DEPLOYING", "ensure r2"}},
		{"but after a pause", active("r1").with("r1", ready).candidate("r2").with("r2", gone, exited(1, time.Second, 1)),
			[]string{"switch r1", "ensure r1", "report r2 DEPLOYING", "wait 1s"}},
		{"a revision that crashes keeps the old one serving", active("r1").with("r1", ready).
			candidate("r2").with("r2", gone, exited(1, 0, 2), said("GET /ok: connection refused", "Traceback", "no module named 'requests'")),
			[]string{"switch r1", "ensure r1",
				"report r2 DEPLOY_FAILED the agent server exited with code 1 before it was ready (attempt 3 of 3); last probe: GET /ok: connection refused; last log lines: Traceback | no module named 'requests'",
				"remove r2"}},
		{"a killed candidate has no exit code", nothingActive().candidate("r2").with("r2", gone, exited(-1, 0, 2)),
			[]string{"hold", "report r2 DEPLOY_FAILED the agent server ended by a signal or with an unknown exit code before it was ready (attempt 3 of 3)", "remove r2"}},
		{"a hopeless candidate fails at once", active("r1").with("r1", ready).candidate("r2").with("r2", starting, hopeless(`graph "a" cannot be loaded: no attribute "make_grpah"`)),
			[]string{"switch r1", "ensure r1", `report r2 DEPLOY_FAILED graph "a" cannot be loaded: no attribute "make_grpah"`, "remove r2"}},
		{"a slow candidate fails at its deadline", active("r1").with("r1", ready).candidate("r2").with("r2", starting, started(5*time.Minute), said("GET /ok: 500 {}")),
			[]string{"switch r1", "ensure r1", "report r2 DEPLOY_FAILED the agent server was not ready after 5m0s; last probe: GET /ok: 500 {}", "remove r2"}},
		{"a crashed active one is started again after a second", active("r1").with("r1", gone, exited(1, time.Second, 0)),
			[]string{"hold r1", "ensure r1"}},
		{"its pause doubles up to a minute", active("r1").with("r1", gone, exited(1, time.Second, 40)),
			[]string{"hold r1", "wait 59s"}},
		{"a crashed active one is not the candidate's business", active("r1").with("r1", gone, exited(1, 0, 0)).candidate("r2").with("r2", ready),
			[]string{"switch r2", "report r2 DEPLOYED", "wait 1s"}},
		{"a missing active one is started", active("r1"), []string{"hold r1", "ensure r1"}},
		{"a hopeless active one is never stopped", active("r1").with("r1", starting, hopeless("x"), started(time.Hour)), []string{"hold r1", "ensure r1"}},
		{"a deleted deployment is torn down", deleted().with("r1", ready).with("r2", starting),
			[]string{"unroute", "remove r1", "remove r2", "destroy", "gone"}},
		{"of a deployment that vanished, workloads end and data stays", nothingActive().with("r1", ready),
			[]string{"hold", "drain r1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := words(plan.Next(c.world.desired, c.world.observed, now, plan.Defaults()))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// words writes steps as the table does.
func words(steps []plan.Step) []string {
	var out []string
	for _, s := range steps {
		verb := string(s.Verb)
		if s.Verb == plan.Switch && s.Endpoint == "" {
			verb = "hold"
		}
		text := fmt.Sprintf("%s %s %s %s", verb, s.RevisionID, s.Status, s.Reason)
		if s.Verb == plan.Wait {
			text = fmt.Sprintf("wait %s", s.Until.Sub(now))
		}
		out = append(out, strings.Join(strings.Fields(text), " "))
	}
	return out
}

func TestBackoffDoubles(t *testing.T) {
	t.Parallel()
	s := plan.Defaults()
	for restarts, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		if got := s.Backoff(restarts); got != want*time.Second {
			t.Errorf("after %d restarts: got %s, want %ds", restarts, got, want)
		}
	}
}

func TestARetiredDeploymentLosesItsWorkloadsNotItsData(t *testing.T) {
	t.Parallel()
	w := nothingActive().with("r1", slipway.PhaseReady).with("r2", slipway.PhaseStarting)
	w.desired.Retired = true
	got := words(plan.Next(w.desired, w.observed, now, plan.Defaults()))
	if diff := cmp.Diff(got, []string{"unroute", "remove r1", "remove r2", "gone"}); diff != "" {
		t.Error(diff)
	}
}
