package beacon

import (
	"context"
	"time"
)

// Store keeps a collector's records. Implementations pass storetest.RunBeacon.
type Store interface {
	// Update runs fn in one serialisable write transaction and returns once its effects are durable; an error of fn rolls
	// everything back and is returned as it is. fn may run again after a conflict, so it has no other effects.
	Update(ctx context.Context, fn func(tx Tx) error) error
	// View runs fn on one consistent snapshot; writing fails.
	View(ctx context.Context, fn func(tx Tx) error) error
}

// Tx is one transaction of a Store. Getters answer CodeNotFound with a readable sentence when there is nothing.
type Tx interface {
	PutLicence(l Licence) error // insert or replace by ID
	Licence(id string) (Licence, error)
	Licences() ([]Licence, error) // oldest first

	// AddTransactions stores those whose id the customer has not sent before and counts them; it returns how many. The
	// others count as duplicates. No statement per transaction.
	AddTransactions(l Licence, list []TraceTransaction, now time.Time) (inserted int, err error)
	// AddLate counts transactions that are too old to be recognised if they were sent twice, and are therefore not stored.
	AddLate(l Licence, n int, now time.Time) error
	// PutSnapshot stores a snapshot. One of the same customer and interval is replaced: the later sent is right.
	PutSnapshot(l Licence, s UsageSnapshot, now time.Time) error
	// AddSignals queues a batch and counts its items and those that were refused.
	AddSignals(s Signals, refused int) error

	// Months returns what was counted, by customer, licence and month.
	Months(q UsageQuery) ([]MonthUsage, error)

	// ClaimSignals takes the oldest batches of a kind that nobody holds, up to a number and a size (but at least one), and
	// holds them until a time; a batch that is not deleted by then can be claimed again.
	ClaimSignals(kind SignalKind, now, until time.Time, most int, bytes int64) ([]Signals, error)
	// ReleaseSignals gives claimed batches back at once.
	ReleaseSignals(seqs []int64) error
	// DeleteSignals removes batches that were delivered or refused.
	DeleteSignals(seqs []int64) error
	// QueuedSignals tells how much is queued.
	QueuedSignals() (Queued, error)

	// SweepTransactions removes up to limit transactions whose interval ended before a time; what they counted stays counted.
	SweepTransactions(before time.Time, limit int) (int, error)
	// SweepSnapshots removes up to limit snapshots whose interval ended before a time.
	SweepSnapshots(before time.Time, limit int) (int, error)
	// SweepSignals removes up to limit of the oldest batches: those received before a time and those that keep the queue
	// above a size.
	SweepSignals(before time.Time, bytes int64, limit int) (int, error)
}

// UsageQuery selects months; zero fields select everything.
type UsageQuery struct {
	LicenceID string
	From, To  string // months as in 2026-03, inclusive
}

// MonthUsage is what was counted for one licence in one month.
type MonthUsage struct {
	LicenceID    string           `json:"license_id"`
	Customer     string           `json:"customer"`
	Month        string           `json:"month"`
	TraceCount   int64            `json:"trace_count"`
	Transactions int64            `json:"transactions"`
	Duplicates   int64            `json:"duplicates"` // resent transactions, counted in the month they were received
	Late         int64            `json:"late"`       // transactions older than the retention, in the month they were received
	Snapshots    int64            `json:"snapshots"`
	Measures     map[string]int64 `json:"measures"` // of the snapshot with the latest end
	Peaks        map[string]int64 `json:"peaks"`    // the highest value of each measure
	Spans        int64            `json:"spans"`
	DataPoints   int64            `json:"data_points"`
	LogRecords   int64            `json:"log_records"`
	Refused      int64            `json:"refused"` // spans, points and records that were not accepted
}

// Queued is how much operational telemetry waits.
type Queued struct {
	Batches, Items, Bytes int64
	Oldest                time.Time // zero = nothing waits
}

// Exporter delivers batches of operational telemetry to another OTLP backend. It may be called concurrently.
type Exporter interface {
	// Export delivers joined payloads of one kind. A *Delay error says that it may work later; every other error is final.
	Export(ctx context.Context, kind SignalKind, payload []byte) error
}

// Delay is a failure that another attempt may mend.
type Delay struct {
	After time.Duration // what the backend asked for; 0 = it did not say
	Err   error
}

// Error returns the failure.
func (d *Delay) Error() string { return d.Err.Error() }

// Unwrap returns the failure.
func (d *Delay) Unwrap() error { return d.Err }

// Keys keeps an issuer's keys. It is safe for concurrent use.
type Keys interface {
	// Ring returns the keys; it is read again when they may have changed elsewhere.
	Ring() (KeyRing, error)
	// Rotate puts a new key in front and returns it. The old ones keep verifying.
	Rotate() (SigningKey, error)
}
