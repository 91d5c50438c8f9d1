package main

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/store/sqlite"
)

// Counts are read where the agent server keeps them, beside it; a deployment without data has none, and none are made.
func TestStoredCounts(t *testing.T) {
	t.Parallel()
	where := installation{dir: t.TempDir()}
	c := &storedCounts{where: where}
	never := func(agent.TraceCounts) error { return errors.New("it was called") }
	if err := c.WithCounts(t.Context(), "d", never); err != nil {
		t.Errorf("a deployment without data: %v", err)
	}
	if _, err := os.Stat(where.path("deployments")); err == nil {
		t.Error("data were made")
	}
	if err := os.MkdirAll(where.path("deployments", "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	server, err := sqlite.OpenAgent(where.path("deployments", "d", "agent.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	server.CountBy(time.Minute)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	run, err := server.Admit(t.Context(), agent.Admission{
		Run:          agent.Run{ID: "r", ThreadID: "t", AssistantID: "a", GraphID: "g", CreatedAt: at, Kwargs: agent.Kwargs{Config: []byte("{}")}},
		CreateThread: true, ClaimFor: "i", Now: at,
	})
	if err != nil {
		t.Fatal(err)
	}
	fence := agent.Fence{RunID: "r", Epoch: run.Run.Epoch}
	if _, err := server.Finish(t.Context(), agent.Finish{Fence: fence, Status: agent.RunSuccess, Now: at}); err != nil {
		t.Fatal(err)
	}
	var got []agent.TraceCount
	read := func(counts agent.TraceCounts) (err error) {
		got, err = counts.SealCounts(context.Background(), at.Add(time.Minute), 10)
		return err
	}
	if err := c.WithCounts(t.Context(), "d", read); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Traces != 1 || !got[0].From.Equal(at.Truncate(time.Minute)) || got[0].To.Sub(got[0].From) != time.Minute {
		t.Errorf("counts are %+v", got)
	}
}
