package postgres_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/store/postgres/pgtest"
)

// Texts that Postgres cannot hold are no fault of a request: they are stored with U+FFFD and found again.
func TestTextsThatPostgresCannotHold(t *testing.T) {
	t.Parallel()
	ctx, url := context.Background(), pgtest.URL(t)
	s := openAgent(t, url, "agent_test")
	odd := json.RawMessage(`{"a":"x\u0000y","lone":"\ud800","deep":"\\u0000"}`)
	id := "thread\x00\xff"
	if _, err := s.CreateThread(ctx, agent.Thread{ID: id, Metadata: odd, CreatedAt: time.UnixMicro(1)}, false); err != nil {
		t.Fatal(err)
	}
	got, err := s.Thread(ctx, id)
	if err != nil || string(got.Metadata) != string(odd) {
		t.Errorf("got metadata %s (%v), want %s", got.Metadata, err, odd)
	}
	for _, want := range []string{`{"a":"x\u0000y"}`, `{"a":"\ud800"}`, `{"n":1e999999}`} {
		if _, err := s.Threads(ctx, agent.ThreadQuery{Metadata: json.RawMessage(want)}); err != nil {
			t.Errorf("search for %s: %v", want, err)
		}
	}
	c := openControl(t, url)
	line := slipway.LogEntry{DeploymentID: "d", Kind: slipway.LogDeploy, At: time.UnixMicro(1), Message: "a\x00b\xff"}
	if err := c.AppendLogs(ctx, []slipway.LogEntry{line}); err != nil {
		t.Fatal(err)
	}
	_ = c.View(ctx, func(tx slipway.Tx) error {
		lines, err := tx.Logs(slipway.LogQuery{DeploymentID: "d", Kind: slipway.LogDeploy, Limit: 1})
		if err != nil || len(lines) != 1 || lines[0].Message != "a\ufffdb\ufffd" {
			t.Errorf("got lines %v (%v)", lines, err)
		}
		return nil
	})
}
