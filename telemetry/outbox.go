package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/slipway-dev/slipway/beacon"
)

var _ beacon.Outbox = (*Sender)(nil)

// known remembers which transactions wait and which were taken.
type known struct {
	mu        sync.Mutex
	queued    map[string]struct{}
	delivered map[string]struct{}
}

func newKnown() *known {
	return &known{queued: map[string]struct{}{}, delivered: map[string]struct{}{}}
}

// name is the id of a transaction, "" of anything else.
func name(r record) string {
	var t struct {
		ID string `json:"id"`
	}
	if r.kind != kindTransaction || json.Unmarshal(r.payload, &t) != nil {
		return ""
	}
	return t.ID
}

// note finds the id of a record that is in the journal.
func (k *known) note(r record) string {
	id := name(r)
	if id != "" {
		k.mu.Lock()
		k.queued[id] = struct{}{}
		k.mu.Unlock()
	}
	return id
}

// lost forgets a record that cannot be read: whoever counted it adds it again.
func (k *known) lost(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.queued, id)
}

func (k *known) taken(ids []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range ids {
		if id != "" {
			delete(k.queued, id)
			k.delivered[id] = struct{}{}
		}
	}
}

// Add implements beacon.Outbox.
func (s *Sender) Add(_ context.Context, list []beacon.TraceTransaction) error {
	if s.billing == nil {
		return fmt.Errorf("queue trace transactions: nothing is sent here")
	}
	var fresh []record
	s.known.mu.Lock()
	for _, t := range list {
		_, queued := s.known.queued[t.ID]
		_, delivered := s.known.delivered[t.ID]
		if queued || delivered {
			continue
		}
		payload, err := json.Marshal(t)
		if err != nil {
			s.known.mu.Unlock()
			return fmt.Errorf("queue trace transactions: %w", err)
		}
		fresh = append(fresh, record{kindTransaction, payload})
	}
	s.known.mu.Unlock()
	if err := s.billing.add(fresh); err != nil {
		s.known.mu.Lock()
		defer s.known.mu.Unlock()
		for _, r := range fresh { // indexed by name before it failed
			delete(s.known.queued, name(r))
		}
		return fmt.Errorf("queue trace transactions: %w", err)
	}
	return nil
}

// Delivered implements beacon.Outbox.
func (s *Sender) Delivered(ids []string) map[string]bool {
	s.known.mu.Lock()
	defer s.known.mu.Unlock()
	out := map[string]bool{}
	for _, id := range ids {
		if _, ok := s.known.delivered[id]; ok {
			out[id] = true
		}
	}
	return out
}

// Forget implements beacon.Outbox.
func (s *Sender) Forget(ids []string) {
	s.known.mu.Lock()
	defer s.known.mu.Unlock()
	for _, id := range ids {
		delete(s.known.delivered, id)
	}
}
