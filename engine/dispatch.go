package engine

import (
	"context"
	"time"

	"github.com/slipway-dev/slipway/agent"
)

// seat is a live worker with its free slots.
type seat struct {
	w    agent.Worker
	info agent.WorkerInfo
	free int // guarded by Engine.mu
	// crippled: a part that its runs need cannot be loaded.
	crippled bool
}

func (s *seat) serves(graphID string) bool {
	failure, known := s.info.Graphs[graphID]
	return known && failure == nil && !s.crippled
}

// WorkerUp takes a worker into the pool.
func (e *Engine) WorkerUp(w agent.Worker) {
	info := w.Info()
	e.mu.Lock()
	e.pool[info.ID] = &seat{w: w, info: info, free: max(info.Slots, 1), crippled: e.noteParts(info)}
	delete(e.broken, info.Language)
	for id, failure := range info.Graphs {
		if failure == nil {
			delete(e.failures, id)
			continue
		}
		e.failures[id] = failure.Message
	}
	e.stillborn[info.Language] = -1
	close(e.arrival)
	e.arrival = make(chan struct{})
	e.mu.Unlock()
	e.introduce(topicHere)
	wakeLoop(e.hopelessKick)
	e.log.Info("worker up", "worker", info.ID, "language", info.Language, "pid", info.PID)
	e.noteAuth(info)
	e.wake()
}

// WorkerDown takes a worker out of the pool; its runs have been told.
func (e *Engine) WorkerDown(w agent.Worker, err error) {
	info := w.Info()
	e.mu.Lock()
	delete(e.pool, info.ID)
	draining := e.draining
	e.mu.Unlock()
	if !draining {
		e.log.Error("worker lost", "worker", info.ID, "language", info.Language, "pid", info.PID, "error", err)
	}
}

// WorkerFailed remembers why workers of a language do not come up.
func (e *Engine) WorkerFailed(language string, err error) {
	e.mu.Lock()
	e.broken[language] = err.Error()
	given := false
	if e.stillborn[language] >= 0 {
		e.stillborn[language]++
		given = e.stillborn[language] == hopelessAfter
	}
	e.mu.Unlock()
	if given {
		e.introduce(topicHere)
		wakeLoop(e.hopelessKick)
	}
	e.log.Error("worker did not start", "language", language, "error", err)
}

// reserve takes a slot of the least busy worker that serves the graph; nil without one.
func (e *Engine) reserve(graphID string) *seat {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.draining {
		return nil
	}
	s := e.pick(graphID)
	if s == nil || s.free <= 0 {
		e.starved = true
		return nil
	}
	s.free--
	e.running.Add(1)
	return s
}

// unreserve gives a slot back that no run was started on; nil is none.
func (e *Engine) unreserve(s *seat) {
	if s == nil {
		return
	}
	e.giveBack(s)
	e.running.Done()
}

// pick returns the worker with the most free slots that serves the graph; called with mu held.
func (e *Engine) pick(graphID string) *seat {
	var best *seat
	for _, s := range e.pool {
		if s.serves(graphID) && (best == nil || s.free > best.free) {
			best = s
		}
	}
	return best
}

// giveBack frees a slot; somebody may be waiting for it.
func (e *Engine) giveBack(s *seat) {
	e.mu.Lock()
	s.free++
	starved := e.starved
	e.mu.Unlock()
	if starved {
		e.wake()
	}
}

// wake runs the dispatcher once more.
func (e *Engine) wake() { wakeLoop(e.kick) }

// dispatch claims pending runs whenever something happened that may make one runnable, or a delayed one is due.
func (e *Engine) dispatch(ctx context.Context) {
	due := time.NewTimer(time.Hour)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.kick:
		case <-due.C:
		}
		next := e.claimAll(ctx)
		due.Stop()
		if !next.IsZero() {
			due.Reset(max(next.Sub(e.clock()), 0) + time.Millisecond)
		}
	}
}

// claimAll claims for each group of workers and returns when the earliest delayed run becomes due.
func (e *Engine) claimAll(ctx context.Context) time.Time {
	var next time.Time
	for _, language := range e.languages() {
		if at := e.claimFor(ctx, language); next.IsZero() || (!at.IsZero() && at.Before(next)) {
			next = at
		}
	}
	return next
}

func (e *Engine) languages() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.draining {
		return nil
	}
	e.starved = false
	seen := map[string]bool{}
	var out []string
	for _, s := range e.pool {
		if !seen[s.info.Language] {
			seen[s.info.Language] = true
			out = append(out, s.info.Language)
		}
	}
	return out
}

func (e *Engine) claimFor(ctx context.Context, language string) time.Time {
	seats, graphs := e.takeFree(language)
	if len(seats) == 0 {
		return time.Time{}
	}
	runs, next, err := e.store.Claim(context.WithoutCancel(ctx), e.cfg.Instance, graphs, len(seats), e.clock())
	if err != nil {
		if ctx.Err() == nil {
			e.log.Error("claiming runs failed", "error", err)
			time.AfterFunc(time.Second, e.wake)
		}
		runs = nil
	}
	full := len(runs) == len(seats)
	for _, r := range runs {
		seats = e.assign(ctx, r, seats)
	}
	e.returnSeats(seats, full)
	return next
}

// takeFree takes every free slot of the workers of a language, one entry each, and the graphs they serve.
func (e *Engine) takeFree(language string) ([]*seat, []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var seats []*seat
	var graphs []string
	if e.draining {
		return nil, nil
	}
	seen := map[string]bool{}
	for _, s := range e.pool {
		if s.info.Language != language {
			continue
		}
		for id := range s.info.Graphs {
			if s.free > 0 && s.serves(id) && !seen[id] {
				seen[id] = true
				graphs = append(graphs, id)
			}
		}
		for ; s.free > 0; s.free-- {
			seats = append(seats, s)
		}
	}
	if len(seats) == 0 {
		e.starved = true
	}
	e.running.Add(len(seats))
	return seats, graphs
}

// assign starts a claimed run on one of the slots and returns the others.
func (e *Engine) assign(ctx context.Context, r agent.Run, seats []*seat) []*seat {
	for i, s := range seats {
		if s.serves(r.GraphID) {
			e.launchClaimed(r, s)
			return append(seats[:i:i], seats[i+1:]...)
		}
	}
	if _, err := e.store.Requeue(ctx, fenceOf(r), true, e.cfg.MaxAttempts, e.clock()); err != nil {
		e.log.Error("giving a run back failed", "run_id", r.ID, "error", err)
	}
	return seats
}

func (e *Engine) returnSeats(seats []*seat, full bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range seats {
		s.free++
		e.running.Done()
	}
	e.starved = e.starved || full
}

func fenceOf(r agent.Run) agent.Fence { return agent.Fence{RunID: r.ID, Epoch: r.Epoch} }
