package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/plan"
)

var phases = []slipway.Phase{slipway.PhaseStarting, slipway.PhaseReady, slipway.PhaseDraining, slipway.PhaseExited}

// anyWorld draws a world that may or may not make sense.
func anyWorld(t *rapid.T) world {
	ids := []string{"r1", "r2", "r3", "r4"}
	w := nothingActive()
	ending := rapid.IntRange(0, 19).Draw(t, "ending")
	w.desired.Deleted, w.desired.Retired = ending <= 1, ending == 2
	if id := rapid.SampledFrom(append(ids, "")).Draw(t, "active"); id != "" {
		w.desired.Active = blueprint(id)
	}
	if id := rapid.SampledFrom(append(ids, "")).Draw(t, "candidate"); id != "" {
		w.desired.Candidate = blueprint(id)
	}
	for _, id := range ids {
		if !rapid.Bool().Draw(t, "seen "+id) {
			continue
		}
		w = w.with(id, rapid.SampledFrom(phases).Draw(t, "phase "+id), func(o *slipway.Observed) {
			ago := time.Duration(rapid.IntRange(0, 400).Draw(t, "ago "+id)) * time.Second
			o.StartedAt, o.ExitedAt, o.DrainUntil = now.Add(-ago), now.Add(-ago), now.Add(200*time.Second-ago)
			o.Restarts = rapid.IntRange(0, 5).Draw(t, "restarts "+id)
			o.Failure = rapid.SampledFrom([]string{"", "", "hopeless"}).Draw(t, "failure "+id)
		})
	}
	return w
}

func (w world) find(id string) (slipway.Observed, bool) {
	i := slices.IndexFunc(w.observed, func(o slipway.Observed) bool { return o.RevisionID == id })
	if i < 0 {
		return slipway.Observed{}, false
	}
	return w.observed[i], true
}

func (w world) ending() bool { return w.desired.Deleted || w.desired.Retired }

func (w world) ready(b *slipway.Blueprint) bool {
	if b == nil {
		return false
	}
	o, ok := w.find(b.RevisionID)
	return ok && o.Phase == slipway.PhaseReady
}

// TestSafety: whatever the world, no step does harm (quality P6).
func TestSafety(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := anyWorld(t)
		steps := plan.Next(w.desired, w.observed, now, plan.Defaults())
		routes := 0
		for i, s := range steps {
			o, seen := w.find(s.RevisionID)
			isActive := w.desired.Active != nil && w.desired.Active.RevisionID == s.RevisionID
			switch s.Verb {
			case plan.Drain, plan.Remove:
				if over := o.Phase == slipway.PhaseDraining && !now.Before(o.DrainUntil); isActive && !w.ending() && (!over || s.Verb != plan.Remove) {
					t.Fatalf("%s of the active revision", s.Verb)
				}
				if !w.ending() && seen && o.Phase == slipway.PhaseReady && w.desired.Active != nil && !w.ready(w.desired.Active) {
					t.Fatalf("%s of a ready revision while the active one is not ready", s.Verb)
				}
			case plan.Switch:
				if routes++; s.Endpoint != "" && (o.Phase != slipway.PhaseReady || s.Endpoint != o.Endpoint) {
					t.Fatalf("switch to %s in phase %s", s.RevisionID, o.Phase)
				}
			case plan.Report:
				deployed := s.Status == slipway.Deployed
				if isActive || deployed != (o.Phase == slipway.PhaseReady) || (deployed && steps[0].RevisionID != s.RevisionID) {
					t.Fatalf("step %d reports %s as %s in phase %q", i, s.RevisionID, s.Status, o.Phase)
				}
				if s.Status == slipway.DeployFailed && s.Reason == "" {
					t.Fatal("failed without a reason")
				}
			case plan.Destroy:
				if !w.desired.Deleted {
					t.Fatalf("%s of data that may be restored", s.Verb)
				}
			case plan.Gone, plan.Unroute:
				if !w.ending() {
					t.Fatalf("%s of a living deployment", s.Verb)
				}
			case plan.Wait:
				if i != len(steps)-1 || !s.Until.After(now) {
					t.Fatalf("wait is step %d of %d, until %s", i+1, len(steps), s.Until)
				}
			}
		}
		if !w.ending() && routes != 1 {
			t.Fatalf("%d switches, want 1", routes)
		}
	})
}

// TestOrderDoesNotMatter: the plan depends on what is seen, not on how it is listed.
func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := anyWorld(t)
		mixed := rapid.Permutation(w.observed).Draw(t, "order")
		one := plan.Next(w.desired, w.observed, now, plan.Defaults())
		two := plan.Next(w.desired, mixed, now, plan.Defaults())
		if diff := cmp.Diff(words(one), words(two)); diff != "" {
			t.Fatalf("order matters:\n%s", diff)
		}
	})
}

// machine is an engine that makes progress: it does what steps say, and revisions meet their fate.
type machine struct {
	world
	now    time.Time
	fates  map[string]string // good, crash, hopeless, hang
	failed []string
	gone   bool
}

func (m *machine) observed() []slipway.Observed { return m.world.observed }

func (m *machine) apply(s plan.Step) {
	switch s.Verb {
	case plan.Ensure:
		m.ensure(s.RevisionID)
	case plan.Drain:
		m.change(s.RevisionID, func(o *slipway.Observed) { o.Phase, o.DrainUntil = slipway.PhaseDraining, m.now.Add(time.Minute) })
	case plan.Remove:
		m.world.observed = slices.DeleteFunc(slices.Clone(m.world.observed), func(o slipway.Observed) bool { return o.RevisionID == s.RevisionID })
	case plan.Report:
		m.report(s)
	case plan.Gone:
		m.gone = true
	}
}

func (m *machine) report(s plan.Step) {
	switch s.Status {
	case slipway.Deployed:
		m.desired.Active, m.desired.Candidate = m.desired.Candidate, nil
	case slipway.DeployFailed:
		m.failed = append(m.failed, s.RevisionID)
		m.desired.Candidate = nil
	}
}

func (m *machine) ensure(id string) {
	o, seen := m.find(id)
	if seen && o.Phase != slipway.PhaseExited {
		return
	}
	if !seen {
		m.world = m.with(id, slipway.PhaseStarting)
	}
	m.change(id, func(x *slipway.Observed) {
		*x = slipway.Observed{RevisionID: id, Phase: slipway.PhaseStarting, Endpoint: "http://" + id, StartedAt: m.now}
		if seen {
			x.Restarts = o.Restarts + 1
		}
	})
}

func (m *machine) change(id string, fn func(*slipway.Observed)) {
	m.world.observed = slices.Clone(m.world.observed)
	for i := range m.world.observed {
		if m.world.observed[i].RevisionID == id {
			fn(&m.world.observed[i])
		}
	}
}

// progress lets a second pass.
func (m *machine) progress() {
	m.now = m.now.Add(time.Second)
	for _, o := range m.observed() {
		m.change(o.RevisionID, func(o *slipway.Observed) {
			switch {
			case o.Phase == slipway.PhaseDraining && m.fates[o.RevisionID] == "good":
				o.Phase, o.ExitedAt = slipway.PhaseExited, m.now
			case o.Phase != slipway.PhaseStarting:
			case m.fates[o.RevisionID] == "good":
				o.Phase = slipway.PhaseReady
			case m.fates[o.RevisionID] == "crash":
				o.Phase, o.ExitCode, o.ExitedAt = slipway.PhaseExited, 1, m.now
			case m.fates[o.RevisionID] == "hopeless":
				o.Failure = "hopeless"
			}
		})
	}
}

// TestLiveness: from any world, a machine that makes progress ends with the desired revisions and nothing else. The
// active revision is good; the candidate may be anything and becomes active exactly if it is good.
func TestLiveness(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := anyWorld(t)
		fate := rapid.SampledFrom([]string{"good", "crash", "hopeless", "hang"})
		m := &machine{world: w, now: now, fates: map[string]string{}}
		for _, id := range []string{"r1", "r2", "r3", "r4"} {
			m.fates[id] = fate.Draw(t, "fate "+id)
		}
		want := w.desired.Active
		if want != nil {
			m.fates[want.RevisionID] = "good"
			m.change(want.RevisionID, func(o *slipway.Observed) { o.Failure = "" })
		}
		c := w.desired.Candidate
		if c != nil && m.fates[c.RevisionID] == "good" {
			m.change(c.RevisionID, func(o *slipway.Observed) { o.Failure, o.Restarts, o.StartedAt = "", 0, now })
			want = c
		}
		if c != nil && w.ready(c) { // it got there before it could meet its fate
			want = c
			m.fates[c.RevisionID] = "good"
		}
		for i := 0; i < 1500; i++ {
			steps := plan.Next(m.desired, m.observed(), m.now, plan.Defaults())
			for _, s := range steps {
				m.apply(s)
			}
			m.progress()
			if m.settled(want) {
				return
			}
		}
		t.Fatalf("not settled: desired %+v, observed %+v", m.desired, m.observed())
	})
}

func (m *machine) settled(want *slipway.Blueprint) bool {
	if m.ending() {
		return m.gone && len(m.observed()) == 0
	}
	if want == nil {
		return len(m.observed()) == 0 && (m.desired.Candidate == nil)
	}
	return m.desired.Active != nil && m.desired.Active.RevisionID == want.RevisionID && m.ready(want) && len(m.observed()) == 1
}
