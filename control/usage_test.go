package control_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/beacon"
	"github.com/slipway-dev/slipway/control"
)

var errBroken = errors.New("broken")

// meterWorld is one deployment's counts and an outbox, each of which fails, or loses what it remembers, when it is told to.
type meterWorld struct {
	counts    []agent.TraceCount
	opened    []string
	fails     func() bool
	queue     []beacon.TraceTransaction
	delivered map[string]bool
	collector map[string]int64 // by id: what was counted
}

func (w *meterWorld) WithCounts(_ context.Context, id string, fn func(agent.TraceCounts) error) error {
	w.opened = append(w.opened, id)
	return fn(w)
}

func (w *meterWorld) SealCounts(_ context.Context, now time.Time, limit int) (out []agent.TraceCount, err error) {
	if w.fails() {
		return nil, errBroken
	}
	for _, n := range w.counts {
		if !n.To.After(now) && len(out) < limit {
			out = append(out, n)
		}
	}
	return out, nil
}

func (w *meterWorld) DropCounts(_ context.Context, seqs []int64) error {
	if w.fails() {
		return errBroken
	}
	w.counts = slices.DeleteFunc(w.counts, func(n agent.TraceCount) bool { return slices.Contains(seqs, n.Seq) })
	if w.fails() {
		return errBroken // the answer was lost
	}
	return nil
}

func (w *meterWorld) Add(_ context.Context, list []beacon.TraceTransaction) error {
	if w.fails() {
		return errBroken
	}
	for _, t := range list {
		if !w.delivered[t.ID] && !slices.ContainsFunc(w.queue, func(q beacon.TraceTransaction) bool { return q.ID == t.ID }) {
			w.queue = append(w.queue, t)
		}
	}
	if w.fails() {
		return errBroken // it is queued all the same
	}
	return nil
}

func (w *meterWorld) Delivered(ids []string) map[string]bool {
	out := map[string]bool{}
	for _, id := range ids {
		if w.delivered[id] {
			out[id] = true
		}
	}
	return out
}

func (w *meterWorld) Forget(ids []string) {
	for _, id := range ids {
		delete(w.delivered, id)
	}
}

// send delivers what is queued; the collector counts an id once.
func (w *meterWorld) send() {
	for _, t := range w.queue {
		if _, twice := w.collector[t.ID]; !twice {
			w.collector[t.ID] = t.TraceCount
		}
		w.delivered[t.ID] = true
	}
	w.queue = nil
}

func newMeterWorld() *meterWorld {
	return &meterWorld{fails: func() bool { return false }, delivered: map[string]bool{}, collector: map[string]int64{}}
}

func (w *meterWorld) total() (n int64) {
	for _, count := range w.collector {
		n += count
	}
	return n
}

func hours(from int, traces int64) agent.TraceCount {
	at := time.Date(2026, 1, 1, from, 0, 0, 0, time.UTC)
	return agent.TraceCount{Seq: int64(from + 1), From: at, To: at.Add(time.Hour), First: at.Add(time.Minute), Last: at.Add(2 * time.Minute), Traces: traces}
}

func meterOf(w *world, store slipway.Store, m *meterWorld, since time.Time) *control.Meter {
	return control.NewMeter(control.MeterConfig{Every: time.Hour, Since: since, Organisation: beacon.NameID("o")}, store, m, m, w.Now, slog.New(slog.DiscardHandler))
}

func TestTransactionsSayWhatWasCounted(t *testing.T) {
	t.Parallel()
	store, m := database(t), newMeterWorld()
	w := newWorldOn(t, store)
	d := w.create()
	m.counts = []agent.TraceCount{hours(0, 7), hours(1, 2), hours(2, 5)}
	meter := meterOf(w, store, m, hours(0, 0).To)
	must(t, 0, meter.Read(t.Context()))
	if len(m.counts) != 2 || len(m.queue) != 2 {
		t.Fatalf("%d counts, %d queued; want the hour before telemetry dropped, the others queued and kept", len(m.counts), len(m.queue))
	}
	got := m.queue[0]
	projects, err := w.TracingProjects(t.Context(), w.Admin, slipway.TracingProjectQuery{})
	must(t, 0, err)
	var problems slipway.Problems
	got.Validate(&problems, nil, w.Now().Add(100*365*24*time.Hour))
	if got.SessionID != projects[0].ID || got.TenantID != d.TenantID || got.TraceCount != 2 || got.OrganizationID != beacon.NameID("o") ||
		!got.StartIntervalTime.Equal(hours(1, 0).From) || !got.EndIntervalTime.Equal(hours(1, 0).To) || len(problems) > 0 {
		t.Errorf("transaction %+v (%v)", got, problems)
	}
	m.send()
	must(t, 0, meter.Read(t.Context()))
	if len(m.counts) != 0 || len(m.delivered) != 0 {
		t.Errorf("%d counts and %d ids are kept after delivery", len(m.counts), len(m.delivered))
	}
	m.counts = []agent.TraceCount{{Seq: 9, From: w.Now(), To: w.Now().Add(time.Hour), Traces: 3}}
	must(t, 0, meter.Read(t.Context()))
	if len(m.queue) != 0 {
		t.Error("an interval that is not over was taken")
	}
	must(t, 0, meter.Last(t.Context(), d.ID))
	if len(m.queue) != 1 || m.queue[0].TraceCount != 3 {
		t.Errorf("before its data go the deployment's last count must be queued: %+v", m.queue)
	}
}

// Whatever fails or forgets, and whenever, every trace counts once.
func TestMeterCountsOnce(t *testing.T) {
	t.Parallel()
	store := database(t)
	w := newWorldOn(t, store)
	w.create()
	for seed := range uint64(300) {
		random, m := rand.New(rand.NewPCG(seed, 1)), newMeterWorld()
		m.fails = func() bool { return random.IntN(4) == 0 }
		meter, want := meterOf(w, store, m, time.Time{}), int64(0)
		for hour := range 12 {
			n := int64(1 + random.IntN(9))
			m.counts, want = append(m.counts, hours(hour, n)), want+n
			_ = meter.Read(t.Context()) // fails now and then
			switch random.IntN(4) {
			case 0:
				m.send()
			case 1: // the platform is killed: what was delivered is forgotten
				clear(m.delivered)
			case 2: // the outbox is damaged and everything in it lost
				m.queue = nil
			}
		}
		m.fails = func() bool { return false }
		for range 3 {
			must(t, 0, meter.Read(t.Context()))
			m.send()
		}
		if got := m.total(); got != want || len(m.counts) != 0 {
			t.Fatalf("seed %d: counted %d of %d, %d counts left", seed, got, want, len(m.counts))
		}
	}
}

func TestUsageMeasures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create()
	got, err := w.UsageMeasures(t.Context())
	must(t, 0, err)
	if got["workspaces"] != 1 || got["projects"] != 1 || got["deployments"] != 1 || got["users"] != 0 || len(got) < len(beacon.Measures()) {
		t.Errorf("measures are %v", got)
	}
}
