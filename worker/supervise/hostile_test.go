package supervise_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// A value of the wrong type in a storage operation is the trouble of its run alone: the worker and its other runs go on.
func TestAnOperationThatCannotBeReadHarmsItsOwnRunOnly(t *testing.T) {
	t.Parallel()
	_, _, w := start(t)
	other, ask, tell := newSink(), newSink(), newSink()
	w.Run(job("hang"), other)
	w.Run(job("ask"), ask)
	if d := receive(t, ask.done, "answer"); d.Snapshot == nil || !strings.Contains(string(d.Snapshot.Values), `"code":"invalid"`) {
		t.Errorf("asked: got %+v, want a refusal", d)
	}
	w.Run(job("tell"), tell)
	if err := receive(t, tell.failed, "failure"); slipway.ErrorCode(err) != slipway.CodeInvalid {
		t.Errorf("told: got %v, want invalid", err)
	}
	w.Cancel("hang", string(agent.CancelInterrupt), "enough")
	if d := receive(t, other.done, "end of the other run"); d.Status != "cancelled" {
		t.Errorf("other: got %+v, want cancelled", d)
	}
}

func TestAWorkerThatTalksNonsenseIsReplaced(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"exit", "garbage", "huge"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			h, _, w := start(t)
			s := newSink()
			w.Run(job(how), s)
			receive(t, s.lost, "loss")
			receive(t, h.down, "farewell")
			again := newSink()
			receive(t, h.up, "next worker").Run(job("run"), again)
			if d := receive(t, again.done, "end"); d.Status != "success" {
				t.Errorf("run on the next worker: got %+v", d)
			}
		})
	}
}

// 50 MB of output do not stay in memory, and a run beside them ends.
func TestAFloodOfOutputIsPassedOnLineByLine(t *testing.T) {
	t.Parallel()
	h := newHandler()
	pool := newPool(h)
	var most runtime.MemStats
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		for n := 0; n < 50<<10; n++ {
			<-h.lines
		}
		runtime.ReadMemStats(&most)
	}()
	if err := pool.Start(h); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Stop)
	w := receive(t, h.up, "worker")
	flood := newSink()
	w.Run(job("flood"), flood)
	receive(t, flood.done, "end")
	receive(t, seen, "lines")
	if most.HeapInuse > 40<<20 {
		t.Errorf("heap: got %d MB in use", most.HeapInuse>>20)
	}
}
