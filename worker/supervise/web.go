package supervise

import (
	"context"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/worker/wire"
)

// maxBacklog is how many bytes may wait for a worker to read its link before bodies of exchanges wait too.
const maxBacklog = 8 << 20

// webLink is the link as exchanges need it.
type webLink struct{ *link }

// Send queues a frame.
func (w webLink) Send(f wire.Frame) error { return w.send(f) }

// Flow waits until the worker has read most of what was sent.
func (w webLink) Flow(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.unsent) < maxBacklog {
		return nil
	}
	defer context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.drained.Broadcast()
	})()
	for len(w.unsent) >= maxBacklog && w.gone == nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		w.drained.Wait()
	}
	return nil
}

// Accept takes a request of user code.
func (w webLink) Accept(x *wire.Exchange) {
	m := x.Message()
	r := m.HTTPRequest
	if run := w.run(m.Run); run != nil {
		r.RunID = run.id
	}
	if m.Outer != nil {
		if outer := w.web.Of(*m.Outer); outer != nil {
			r.Outer = outer
		}
	}
	handler, ok := w.pool.handler.(agent.RequestHandler)
	if !ok || m.Run != 0 && r.RunID == "" {
		x.HangUp(0, "nobody answers the request")
		return
	}
	x.SetRequest(r)
	w.asks.Go(func() {
		defer x.HangUp(0, "the request was not answered")
		handler.WorkerRequest(w.link, x)
	})
}

// Exchange begins a request for the application's HTTP app.
func (l *link) Exchange(r agent.HTTPRequest) (agent.Exchange, error) {
	if l.info.Loaded(agent.PartApp) == nil {
		return nil, slipway.Errorf(slipway.CodeInternal, "worker %s has no HTTP app", l.info.ID)
	}
	x, err := l.web.Begin(wire.RequestMessage{HTTPRequest: r})
	if err != nil {
		return nil, err
	}
	return x, nil
}
