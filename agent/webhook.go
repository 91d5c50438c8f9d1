package agent

import (
	"context"
	"encoding/json"
	"time"
)

// Notice is the word that a run has ended, on its way to the address its creator gave (agent-server reference 4.4).
type Notice struct {
	ID        string // that of the run: a run ends once
	URL       string
	Run       Run
	Values    json.RawMessage // of the thread at the run's end; nil for a temporary run
	Attempts  int             // made so far, with the one this notice was taken for
	CreatedAt time.Time
}

// NoticeStore keeps notices until they are delivered or given up. The end of a run with a webhook writes its notice in the same
// transaction; a run that is rolled back leaves none.
type NoticeStore interface {
	// TakeNotices returns up to limit notices that are due, the longest overdue first, and puts each off until the given
	// time: whoever took it has until then.
	TakeNotices(ctx context.Context, now, until time.Time, limit int) ([]Notice, error)
	// NextNotice returns when the next notice is due, zero without one.
	NextNotice(ctx context.Context) (time.Time, error)
	// PutOffNotice makes a notice due later; an unknown one is no error.
	PutOffNotice(ctx context.Context, id string, until time.Time) error
	// DropNotice removes a notice; an unknown one is no error.
	DropNotice(ctx context.Context, id string) error
}
