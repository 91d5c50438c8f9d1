package agent

import (
	"context"
	"encoding/json"
	"time"
)

// Cron makes runs by a schedule (agent-server reference 6).
type Cron struct {
	ID             string
	AssistantID    string
	ThreadID       string // "" = stateless: each firing has a thread of its own
	Schedule       string
	Timezone       string    // IANA name; "" = UTC
	EndTime        time.Time // zero = none
	NextRun        time.Time // zero = none: disabled or past its end
	Enabled        bool
	OnRunCompleted string // "delete" or "keep"; "" on a thread
	UserID         string // whom its runs act for; "" = nobody
	Metadata       json.RawMessage
	Payload        json.RawMessage // the creation's body as it is shown
	Request        json.RawMessage // the run to make, as the engine understands it
	CreatedAt      time.Time
	UpdatedAt      time.Time
}

// CronQuery selects crons.
type CronQuery struct {
	AssistantID, ThreadID string          // "" = any
	Enabled               *bool           // nil = any
	Metadata              json.RawMessage // JSON containment; nil = any
	Filter                *Filter         // on the metadata
	SortBy                string          // a column of the reference's list; "" = created_at
	Ascending             bool
	Limit, Offset         int
}

// Firing is one due date of a cron, and the run it makes.
type Firing struct {
	CronID string
	Due    time.Time  // the NextRun it was seen with: who comes later with the same one comes too late
	Next   time.Time  // zero = none any more
	Run    *Admission // nil = the date passes without a run
}

// CronStore keeps crons. A missing one is CodeNotFound "Cron not found"; those of a thread or an assistant go with it.
type CronStore interface {
	// CreateCron inserts a cron; CodeNotFound if its thread does not exist.
	CreateCron(ctx context.Context, c Cron) error
	Cron(ctx context.Context, id string) (Cron, error)
	Crons(ctx context.Context, q CronQuery) ([]Cron, error)
	CountCrons(ctx context.Context, q CronQuery) (int, error)
	// ChangeCron replaces a cron by what change makes of it, in one transaction. change may be called again and has no
	// effects; its error is returned as it is.
	ChangeCron(ctx context.Context, id string, change func(Cron) (Cron, error)) (Cron, error)
	DeleteCron(ctx context.Context, id string) error
	// NextCron returns when the next enabled cron is due, zero without one.
	NextCron(ctx context.Context) (time.Time, error)
	// DueCrons returns up to limit enabled crons due by now, the longest overdue first.
	DueCrons(ctx context.Context, now time.Time, limit int) ([]Cron, error)
	// Fire moves a cron to its next date and admits its run in one transaction. fired is false if another instance, or a
	// change of the cron, was faster. A run that its thread refuses (multitask strategy reject), or
	// whose thread is gone or hidden (Admission.Filter), leaves the date passed.
	Fire(ctx context.Context, f Firing) (a Admitted, fired bool, err error)
}
