package engine

import (
	"context"
	"io"
	"math"
	"sync"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// maxWaiting bounds the bytes that wait for one reader; a single larger frame may.
const maxWaiting = 64 << 20

// maxSeq marks a frame that was made up at the end of a stream and was never numbered.
const maxSeq = math.MaxInt64

// Subscription is a reader of a run's stream or of a thread's. It has one reader; Close may be called from anywhere.
type Subscription struct {
	limit int                 // frames that may wait
	leave func(*Subscription) // called once, by Close
	of    string              // the thread whose run is told; "" = not known
	lose  func()              // counts that a reader was too slow for what is not kept; nil = nobody counts
	ready chan struct{}

	mu      sync.Mutex
	queue   []agent.Frame
	waiting int   // bytes in the queue
	err     error // why the stream ended early; told after the queue is empty
	closed  bool
	reread  bool // of a thread's stream: frames may have been lost on their way here, the store has them

	// Replay (reference 10.3), used by the reader only.
	replay   bool
	fetch    func(ctx context.Context, after int64) ([]agent.Frame, error)
	place    func(agent.Frame) int64 // what fetch counts in
	fresh    func(agent.Frame) bool  // false for what has been told already
	position int64                   // highest place fetched
	page     []agent.Frame
	ends     bool // the stream has an `end`
	over     bool
	lost     bool // a frame has come whose predecessor has not

	last string // of a run's stream: frames with ids up to it are not told again
	told int64  // of a thread's stream: the position of the last frame told
}

// ThreadID returns the thread of the run that JoinStream has found; "" of other streams.
func (s *Subscription) ThreadID() string { return s.of }

// newSubscription makes a reader of a run's stream.
func newSubscription(limit int, leave func(*Subscription)) *Subscription {
	s := &Subscription{limit: limit, leave: leave, ready: make(chan struct{}, 1), ends: true}
	s.place = func(f agent.Frame) int64 { return f.Seq }
	s.fresh = s.unheard
	return s
}

// unheard is fresh for a run's stream, whose ids rise.
func (s *Subscription) unheard(f agent.Frame) bool {
	if f.ID == "" {
		return true
	}
	if !idAfter(f.ID, s.last) {
		return false
	}
	s.last = f.ID
	return true
}

func errLeaving() error {
	return slipway.Errorf(slipway.CodeUnavailable, "this server is shutting down; connect again to go on")
}

func errLost() error {
	return slipway.Errorf(slipway.CodeUnavailable, "frames of this stream were lost between servers; connect again to go on")
}

// push adds a frame; false means that the reader is gone or too slow and must be forgotten.
func (s *Subscription) push(f agent.Frame) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.err != nil {
		return false
	}
	if n := len(s.queue); n >= s.limit || n > 0 && s.waiting+len(f.Data) > maxWaiting {
		s.err = slipway.Errorf(slipway.CodeUnavailable,
			"the reader of this stream is too slow: %d frames with %d bytes were waiting; connect again to go on", n, s.waiting)
		if f.ID == "" && s.lose != nil {
			s.lose()
		}
		s.queue, s.waiting = nil, 0
	} else {
		s.queue = append(s.queue, f)
		s.waiting += len(f.Data)
	}
	s.signal()
	return s.err == nil
}

func (s *Subscription) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.signal()
}

// readAgain makes a thread's stream look into the store for what it has not told.
func (s *Subscription) readAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reread = true
	s.signal()
}

func (s *Subscription) signal() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Next returns the next frame, io.EOF after a run's `end` frame, or another error when the stream ended early: the client
// connects again.
func (s *Subscription) Next(ctx context.Context) (agent.Frame, error) {
	for {
		if s.over {
			return agent.Frame{}, io.EOF
		}
		f, ok, err := s.take(ctx)
		if err != nil {
			return agent.Frame{}, err
		}
		if !ok || s.behind(f) || !s.fresh(f) {
			continue
		}
		if s.lost {
			return agent.Frame{}, errLost()
		}
		s.told = max(s.told, agent.FramePosition(f.ID))
		s.over = s.ends && f.Event == "end"
		return f, nil
	}
}

// behind says that frames of another instance which come before f have not arrived yet; they are read from the store, and
// then f again.
func (s *Subscription) behind(f agent.Frame) bool {
	if s.ends || f.After <= s.told {
		return false
	}
	f.After = 0
	s.mu.Lock()
	s.queue = append([]agent.Frame{f}, s.queue...)
	s.waiting += len(f.Data)
	s.mu.Unlock()
	s.replay, s.position = true, s.told
	return true
}

func (s *Subscription) take(ctx context.Context) (agent.Frame, bool, error) {
	if s.replay {
		return s.takeReplay(ctx)
	}
	s.mu.Lock()
	if s.reread {
		s.reread = false
		s.mu.Unlock()
		s.replay, s.position = true, s.told
		return agent.Frame{}, false, nil
	}
	if len(s.queue) > 0 {
		f := s.queue[0]
		s.waiting -= len(f.Data)
		s.queue[0] = agent.Frame{}
		if s.queue = s.queue[1:]; len(s.queue) == 0 {
			s.queue = nil
		}
		s.mu.Unlock()
		return f, true, nil
	}
	err := s.err
	s.mu.Unlock()
	if err != nil {
		return agent.Frame{}, false, err
	}
	select {
	case <-s.ready:
		return agent.Frame{}, false, nil
	case <-ctx.Done():
		return agent.Frame{}, false, ctx.Err()
	}
}

func (s *Subscription) takeReplay(ctx context.Context) (agent.Frame, bool, error) {
	if len(s.page) == 0 {
		page, err := s.fetch(ctx, s.position)
		if err != nil {
			return agent.Frame{}, false, err
		}
		if len(page) == 0 {
			s.replay = false
			return agent.Frame{}, false, nil
		}
		s.page = page
	}
	f := s.page[0]
	s.page = s.page[1:]
	s.position = s.place(f)
	return f, true, nil
}

// Close ends the subscription. It is idempotent.
func (s *Subscription) Close() {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.queue = nil
	s.mu.Unlock()
	if was {
		return
	}
	s.fail(io.ErrClosedPipe)
	s.leave(s)
}

// Waiter waits for the end of a run. Result or Close must be called.
type Waiter struct {
	t    *track
	once sync.Once
}

// Result blocks until the run has ended; the Waiter is closed then.
func (w *Waiter) Result(ctx context.Context) (Result, error) {
	defer w.Close()
	return w.t.wait(ctx)
}

// Close gives up waiting. It is idempotent.
func (w *Waiter) Close() { w.once.Do(w.t.drop) }
