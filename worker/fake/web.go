package fake

import (
	"context"
	"sync"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/worker/wire"
)

// web is both ends of a worker's exchanges, the real ones, with a queue in each direction in place of the link.
type web struct {
	worker         *Worker
	server, client *end
	stop           sync.Once
}

// end is one end: where its frames go, and what it does with requests of the other one.
type end struct {
	all    *wire.Exchanges
	peer   *end
	accept func(x *wire.Exchange)

	mu     sync.Mutex
	more   *sync.Cond
	frames []wire.Frame
	closed bool
}

func newWeb(w *Worker) *web {
	b := &web{worker: w, server: &end{}, client: &end{}}
	b.server.peer, b.client.peer = b.client, b.server
	for _, e := range []*end{b.server, b.client} {
		e.more = sync.NewCond(&e.mu)
		e.all = wire.NewExchanges(e, e == b.server)
	}
	b.server.accept = b.request
	b.client.accept = func(x *wire.Exchange) {
		app := w.pool.App
		if app == nil {
			_ = x.Respond(agent.HTTPResponse{Pass: true})
			return
		}
		go app(x)
	}
	go b.server.deliver()
	go b.client.deliver()
	return b
}

// Send queues a frame for the other end.
func (e *end) Send(f wire.Frame) error {
	f.Payload = append([]byte(nil), f.Payload...)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.frames = append(e.frames, f)
	e.more.Signal()
	return nil
}

// Flow never waits.
func (e *end) Flow(context.Context) error { return nil }

// Accept takes a request of the other end.
func (e *end) Accept(x *wire.Exchange) { e.accept(x) }

func (e *end) deliver() {
	for {
		e.mu.Lock()
		for len(e.frames) == 0 && !e.closed {
			e.more.Wait()
		}
		frames := e.frames
		e.frames = nil
		closed := e.closed
		e.mu.Unlock()
		for _, f := range frames {
			_ = e.peer.all.Take(f) // what is wrong with it is seen by the test
		}
		if closed {
			return
		}
	}
}

func (b *web) close() {
	b.stop.Do(func() {
		for _, e := range []*end{b.server, b.client} {
			e.all.Close("the worker went away")
			e.mu.Lock()
			e.closed = true
			e.more.Signal()
			e.mu.Unlock()
		}
	})
}

// request is a request of user code, seen by the server.
func (b *web) request(x *wire.Exchange) {
	m := x.Message()
	r := m.HTTPRequest
	if m.Outer != nil {
		if outer := b.server.all.Of(*m.Outer); outer != nil {
			r.Outer = outer
		}
	}
	b.worker.mu.Lock()
	r.RunID = b.worker.streams[m.Run]
	b.worker.mu.Unlock()
	x.SetRequest(r)
	h, ok := b.worker.pool.handler.(agent.RequestHandler)
	if !ok {
		x.HangUp(0, "nobody answers the request")
		return
	}
	go func() {
		defer x.HangUp(0, "the request was not answered")
		h.WorkerRequest(b.worker, x)
	}()
}

// Exchange begins a request for the pool's App.
func (w *Worker) Exchange(r agent.HTTPRequest) (agent.Exchange, error) {
	if w.info.Loaded(agent.PartApp) == nil {
		return nil, slipway.Errorf(slipway.CodeInternal, "worker %s has no HTTP app", w.info.ID)
	}
	x, err := w.web.server.all.Begin(wire.RequestMessage{HTTPRequest: r})
	if err != nil {
		return nil, err
	}
	return x, nil
}

// Request is a request of user code for its own server: of the run, "" = outside of runs, and for an inner one of the
// exchange with the app that it comes from.
func (w *Worker) Request(r agent.HTTPRequest, runID string, outer agent.Exchange) (agent.Exchange, error) {
	m := wire.RequestMessage{HTTPRequest: r}
	w.mu.Lock()
	for stream, id := range w.streams {
		if id == runID {
			m.Run = stream
		}
	}
	w.mu.Unlock()
	if x, ok := outer.(*wire.Exchange); ok {
		number := x.Number()
		m.Outer = &number
	}
	return w.web.client.all.Begin(m)
}

// Request is a request of the run's code for its own server.
func (r *Run) Request(q agent.HTTPRequest) (agent.Exchange, error) {
	return r.worker.Request(q, r.Job.Run.ID, nil)
}
