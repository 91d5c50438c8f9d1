package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/beacon"
)

// Bounds of one request of billing telemetry.
const (
	batchItems = 1000
	batchBytes = 1 << 20
)

// Kinds of records.
const (
	kindTransaction = 't'
	kindUsage       = 'u'
	kindMetrics     = 'm'
	kindTraces      = 's'
	kindLogs        = 'l'
)

// queue sends what a journal holds, from the front, one request at a time.
type queue struct {
	journal  *journal
	to       collector
	licence  *licence
	now      func() time.Time
	retryMin time.Duration
	retryMax time.Duration
	refusals string // file that keeps billing items the collector will never take; "" = they are only counted
	onError  func(error)
	taken    func(names []string) // hears of what the collector took

	arrived chan struct{}

	mu    sync.Mutex
	limit int // items of the next request
	state beacon.QueueStatus
}

func newQueue(j *journal, to collector, l *licence, now func() time.Time) *queue {
	return &queue{journal: j, to: to, licence: l, now: now, arrived: make(chan struct{}, 1), limit: batchItems, taken: func([]string) {}}
}

// add queues records, all or none.
func (q *queue) add(list []record) error {
	if err := q.journal.append(list); err != nil {
		return err
	}
	select {
	case q.arrived <- struct{}{}:
	default: // it is awake
	}
	return nil
}

// run sends until ctx ends.
func (q *queue) run(ctx context.Context) {
	pause := q.retryMin
	for ctx.Err() == nil {
		s, ok := q.next(q.bound())
		if !ok {
			select {
			case <-ctx.Done():
			case <-q.arrived:
			}
			continue
		}
		err := q.send(ctx, s)
		if ctx.Err() != nil {
			return // unknown: it is sent again
		}
		again := q.settle(s, err)
		if err == nil || again == 0 {
			pause = q.retryMin
			continue
		}
		wait := max(again, pause/2+rand.N(pause/2+1)) // jitter: not every installation at once
		pause = min(2*pause, q.retryMax)
		q.note(func(st *beacon.QueueStatus) { st.NextAttempt = moment(q.now().Add(wait)) })
		if !sleep(ctx, wait) {
			return
		}
	}
}

func (q *queue) bound() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.limit
}

func (q *queue) note(fn func(*beacon.QueueStatus)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	fn(&q.state)
}

// shipment is one request.
type shipment struct {
	entries []entry
	records []record
	path    string
	body    map[string]any // without credentials
	member  string         // of the credential; "" = in a header
}

func (s shipment) names() []string {
	var out []string
	for _, e := range s.entries {
		out = append(out, e.name)
	}
	return out
}

// next makes the request for what is at the front.
func (q *queue) next(most int) (shipment, bool) {
	entries, records := q.journal.peek(most, batchBytes)
	list := shipments(entries, records)
	if len(list) == 0 {
		return shipment{}, false
	}
	return list[0], true
}

// shipments puts items into requests, in their order.
func shipments(entries []entry, records []record) []shipment {
	var out []shipment
	for i := 0; i < len(entries); {
		end := i + 1
		for records[i].kind == kindTransaction && end < len(entries) && records[end].kind == kindTransaction {
			end++
		}
		out = append(out, newShipment(entries[i:end], records[i:end]))
		i = end
	}
	return out
}

func newShipment(entries []entry, records []record) shipment {
	s := shipment{entries: entries, records: records, body: map[string]any{}}
	switch records[0].kind {
	case kindTransaction:
		s.path, s.member = "/v1/beacon/ingest-traces", "license"
		list := make([]beacon.TraceTransaction, len(records))
		for i, r := range records {
			_ = json.Unmarshal(r.payload, &list[i]) // it was written by this program, and its checksum is right
			list[i] = list[i].Attempted(entries[i].attempts)
		}
		s.body["trace_transactions"] = list
	case kindUsage:
		s.path, s.member = "/v1/beacon/usage-snapshot", "license_key"
		_ = json.Unmarshal(records[0].payload, &s.body)
	default:
		s.path = "/v1/beacon/v1/" + string(signalOf(records[0].kind))
		_ = json.Unmarshal(records[0].payload, &s.body)
	}
	return s
}

func signalOf(kind byte) beacon.SignalKind {
	switch kind {
	case kindMetrics:
		return beacon.Metrics
	case kindTraces:
		return beacon.Traces
	}
	return beacon.Logs
}

// send makes the request; a token that is not taken is replaced by the licence itself, once.
func (q *queue) send(ctx context.Context, s shipment) error {
	credential := q.licence.credential()
	err := q.post(ctx, s, credential)
	if code := statusOf(err); (code == 401 || code == 403) && q.licence.reject(credential) {
		err = q.post(ctx, s, q.licence.key)
	}
	return err
}

func (q *queue) post(ctx context.Context, s shipment, credential string) error {
	if s.member != "" {
		s.body[s.member] = credential
		defer delete(s.body, s.member)
		credential = ""
	}
	body, err := json.Marshal(s.body)
	if err != nil {
		return err
	}
	_, err = q.to.post(ctx, s.path, body, credential)
	return err
}

// settle records what became of a request. It returns how long to wait at least before the next, 0 = not at all.
func (q *queue) settle(s shipment, err error) time.Duration {
	if err == nil {
		q.delivered(s)
		return 0
	}
	var f *failure
	if !errors.As(err, &f) {
		f = &failure{text: err.Error()}
	}
	first := false
	q.note(func(st *beacon.QueueStatus) {
		first = st.LastError != f.Error()
		st.LastFailure, st.LastError = moment(q.now()), f.Error()
	})
	if first {
		q.onError(f)
	}
	q.journal.failed(s.entries)
	if f.invalid || f.status == 413 {
		if len(s.entries) > 1 { // one of them is it; the others are not held up by it
			q.mu.Lock()
			q.limit = max(1, len(s.entries)/2)
			q.mu.Unlock()
			return 0
		}
		if f.invalid && q.refuse(s, f) {
			return 0
		}
	}
	return max(f.after, time.Millisecond)
}

func (q *queue) delivered(s shipment) {
	q.journal.done(s.entries)
	q.taken(s.names())
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limit = min(2*q.limit, batchItems)
	q.state.LastSuccess, q.state.LastError, q.state.NextAttempt = moment(q.now()), "", nil
	q.state.Sent += int64(len(s.entries))
}

// refuse takes an item out that the collector will never take. A billing item is kept aside; where that fails it stays.
func (q *queue) refuse(s shipment, f *failure) bool {
	if q.refusals != "" {
		line, err := json.Marshal(map[string]any{"at": q.now(), "error": f.text, "path": s.path, "item": json.RawMessage(s.records[0].payload)})
		if err == nil {
			err = appendLine(q.refusals, line)
		}
		if err != nil {
			q.onError(fmt.Errorf("an item that the collector refused cannot be kept aside: %w", err))
			return false
		}
	}
	q.journal.done(s.entries)
	q.taken(s.names())
	q.note(func(st *beacon.QueueStatus) { st.Refused++ })
	return true
}

func appendLine(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close(), syncDir(filepath.Dir(path)))
}

func (q *queue) status() beacon.QueueStatus {
	q.mu.Lock()
	st := q.state
	q.mu.Unlock()
	st.Items, st.Bytes, st.Failed, st.Dropped, st.Corrupt = q.journal.size()
	if st.Items == 0 {
		st.NextAttempt = nil
	}
	return st
}

// preview makes the requests for what waits, with at most so many items.
func (q *queue) preview(most int) []beacon.SenderRequest {
	entries, records := q.journal.peek(most, batchBytes)
	var out []beacon.SenderRequest
	for _, s := range shipments(entries, records) {
		body, _ := json.Marshal(s.body) // it was read from JSON
		out = append(out, beacon.SenderRequest{Path: s.path, Body: body})
	}
	return out
}
