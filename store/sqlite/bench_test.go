package sqlite_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/agent"
)

// BenchmarkRun is one complete run: thread, admission with claim, three checkpoints with blobs, two pending writes, end.
func BenchmarkRun(b *testing.B) {
	s := openAgent(b, filepath.Join(b.TempDir(), "agent.db"))
	var n atomic.Int64
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := completeRun(s, n.Add(1)); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
}

func completeRun(s agent.Store, n int64) error {
	ctx, now := context.Background(), time.UnixMicro(n+1)
	thread, run := fmt.Sprintf("01900000-0000-7000-8000-%012d", n), fmt.Sprintf("01900000-0000-7000-9000-%012d", n)
	if _, err := s.CreateThread(ctx, agent.Thread{ID: thread, CreatedAt: now, UpdatedAt: now}, false); err != nil {
		return err
	}
	a, err := s.Admit(ctx, agent.Admission{Run: agent.Run{ID: run, ThreadID: thread, GraphID: "g", AssistantID: "a", CreatedAt: now}, ClaimFor: "i", Now: now})
	if err != nil {
		return err
	}
	f := agent.Fence{RunID: run, Epoch: a.Run.Epoch}
	for i := range 3 {
		key := agent.CheckpointKey{ThreadID: thread, ID: fmt.Sprint(i)}
		v := fmt.Sprintf(`"%032d.5"`, i)
		header := json.RawMessage(`{"v":4,"channel_versions":{"messages":` + v + `,"branch":` + v + `}}`)
		typed := agent.Typed{Type: "msgpack", Bytes: make([]byte, 300)}
		s.PutCheckpoint(ctx, f, agent.Checkpoint{CheckpointKey: key, RunID: run, Header: header, Language: "python"},
			[]agent.ChannelBlob{{Channel: "messages", Version: v, Typed: typed}, {Channel: "branch", Version: v, Typed: typed}})
		if i < 2 {
			s.PutWrites(ctx, f, key, []agent.Write{{TaskID: "t", Channel: "messages", Typed: typed}, {TaskID: "t", Index: 1, Channel: "branch", Typed: typed}})
		}
	}
	_, err = s.Finish(ctx, agent.Finish{Fence: f, Status: agent.RunSuccess, Now: now, Snapshot: &agent.Snapshot{
		Values: json.RawMessage(`{"messages":[{"type":"human","content":"hello"}]}`), Next: json.RawMessage(`[]`), Tasks: json.RawMessage(`[]`),
	}})
	return err
}
