package query

import (
	"fmt"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/beacon"
)

const insertSignals = `INSERT INTO signals (kind, licence_id, received_at, items, size, payload) VALUES (?, ?, ?, ?, ?, ?)`

// AddSignals queues a batch and counts it. A batch of which nothing was accepted is counted only.
func (t *beaconTx) AddSignals(s beacon.Signals, refused int) error {
	n := counters{refused: int64(refused)}
	switch s.Kind {
	case beacon.Traces:
		n.spans = int64(s.Items)
	case beacon.Metrics:
		n.points = int64(s.Items)
	case beacon.Logs:
		n.records = int64(s.Items)
	}
	if err := t.add(s.LicenceID, beacon.Month(s.ReceivedAt), n); err != nil || len(s.Payload) == 0 {
		return err
	}
	_, err := t.c.Exec(insertSignals, s.Kind, s.LicenceID, micros(s.ReceivedAt), s.Items, len(s.Payload), s.Payload)
	return err
}

// sized is a row of the queue without its payload.
type sized struct{ seq, size int64 }

func scanSized(s scanner) (v sized, err error) { return v, s.Scan(&v.seq, &v.size) }

const (
	waitingSignals = `SELECT seq, size FROM signals WHERE kind = ? AND held_until <= ? ORDER BY seq LIMIT ?`
	// holdSignals asks again whether nobody holds them: another collector may just have taken them.
	holdSignals    = `UPDATE signals SET held_until = ? WHERE held_until <= ? AND seq IN (%s) RETURNING seq, kind, licence_id, received_at, items, payload`
	releaseSignals = `UPDATE signals SET held_until = 0 WHERE seq IN (%s)`
	deleteSignals  = `DELETE FROM signals WHERE seq IN (%s)`
)

// ClaimSignals takes the oldest free batches of a kind.
func (t *beaconTx) ClaimSignals(kind beacon.SignalKind, now, until time.Time, most int, bytes int64) ([]beacon.Signals, error) {
	waiting, err := all(t.c, scanSized, waitingSignals, kind, micros(now), most)
	if err != nil || len(waiting) == 0 {
		return nil, err
	}
	var seqs []int64
	for _, w := range waiting {
		if bytes -= w.size; bytes < 0 && len(seqs) > 0 {
			break
		}
		seqs = append(seqs, w.seq)
	}
	marks, list := seqList(seqs)
	args := append([]any{micros(until), micros(now)}, list...)
	return all(t.c, scanSignals, fmt.Sprintf(holdSignals, marks), args...)
}

func scanSignals(s scanner) (v beacon.Signals, err error) {
	var at int64
	err = s.Scan(&v.Seq, &v.Kind, &v.LicenceID, &at, &v.Items, &v.Payload)
	v.ReceivedAt = fromMicros(at)
	return v, err
}

// seqList writes a list for IN, filled up with its last element to a power of two so that there are few statements.
func seqList(seqs []int64) (marks string, args []any) {
	size := 1
	for size < len(seqs) {
		size *= 2
	}
	args = make([]any, size)
	for i := range args {
		args[i] = seqs[min(i, len(seqs)-1)]
	}
	return strings.Repeat("?, ", size-1) + "?", args
}

// ReleaseSignals gives claimed batches back.
func (t *beaconTx) ReleaseSignals(seqs []int64) error { return t.eachSeq(releaseSignals, seqs) }

// DeleteSignals removes batches.
func (t *beaconTx) DeleteSignals(seqs []int64) error { return t.eachSeq(deleteSignals, seqs) }

func (t *beaconTx) eachSeq(statement string, seqs []int64) error {
	if len(seqs) == 0 {
		return nil
	}
	marks, args := seqList(seqs)
	_, err := t.c.Exec(fmt.Sprintf(statement, marks), args...)
	return err
}

const queuedSignals = `SELECT COUNT(*), CAST(COALESCE(SUM(items), 0) AS BIGINT), CAST(COALESCE(SUM(size), 0) AS BIGINT), COALESCE(MIN(received_at), 0) FROM signals`

// QueuedSignals tells how much is queued.
func (t *beaconTx) QueuedSignals() (beacon.Queued, error) {
	q, _, err := one(t.c, scanQueued, queuedSignals)
	return q, err
}

func scanQueued(s scanner) (q beacon.Queued, err error) {
	var oldest int64
	err = s.Scan(&q.Batches, &q.Items, &q.Bytes, &oldest)
	q.Oldest = fromMicros(oldest)
	return q, err
}

const (
	sweepTransactions = `DELETE FROM transactions WHERE (customer, id) IN
  (SELECT customer, id FROM transactions WHERE interval_end < ? ORDER BY interval_end LIMIT ?)`
	sweepSnapshots = `DELETE FROM snapshots WHERE (licence_id, interval_start, interval_end) IN
  (SELECT licence_id, interval_start, interval_end FROM snapshots WHERE interval_end < ? ORDER BY interval_end LIMIT ?)`
	sweepSignals  = `DELETE FROM signals WHERE seq IN (SELECT seq FROM signals WHERE received_at < ? ORDER BY received_at LIMIT ?)`
	oldestSignals = `SELECT seq, size FROM signals ORDER BY seq LIMIT ?`
	dropSignals   = `DELETE FROM signals WHERE seq <= ?`
)

// SweepTransactions removes old transactions; their months keep what they counted.
func (t *beaconTx) SweepTransactions(before time.Time, limit int) (int, error) {
	n, err := t.c.Exec(sweepTransactions, micros(before), limit)
	return int(n), err
}

// SweepSnapshots removes old snapshots; their months keep what they said.
func (t *beaconTx) SweepSnapshots(before time.Time, limit int) (int, error) {
	n, err := t.c.Exec(sweepSnapshots, micros(before), limit)
	return int(n), err
}

// SweepSignals removes batches that are too old or for which there is no room.
func (t *beaconTx) SweepSignals(before time.Time, bytes int64, limit int) (int, error) {
	n, err := t.c.Exec(sweepSignals, micros(before), limit)
	if err != nil {
		return 0, err
	}
	q, err := t.QueuedSignals()
	if err != nil || q.Bytes <= bytes {
		return int(n), err
	}
	oldest, err := all(t.c, scanSized, oldestSignals, limit)
	if err != nil {
		return 0, err
	}
	var last int64
	for _, o := range oldest {
		if q.Bytes <= bytes {
			break
		}
		q.Bytes -= o.size
		last = o.seq
	}
	dropped, err := t.c.Exec(dropSignals, last)
	return int(n + dropped), err
}
