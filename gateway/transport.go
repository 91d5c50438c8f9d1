package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

var (
	errNoRoute   = errors.New("nothing serves the deployment")
	errForgotten = errors.New("the deployment was deleted")
)

// retryPause is how long a request waits before it tries a place that refused it again.
const retryPause = 50 * time.Millisecond

// passage follows one request through the gateway.
type passage struct {
	table  *table
	name   string
	until  time.Time // how long it may wait for a route
	target *target
	route  *route // where it went; counted as in flight until done
}

type passageKey struct{}

func passageOf(ctx context.Context) *passage {
	p, _ := ctx.Value(passageKey{}).(*passage)
	return p
}

// done ends the passage's stay in the counters.
func (p *passage) done() {
	if p.route != nil {
		p.route.inFlight.Add(-1)
		p.route = nil
	}
}

// enter takes the current route, waiting for one while there is none; refused is one not to be tried again at once.
func (p *passage) enter(ctx context.Context, refused *route) error {
	p.done()
	timer := time.NewTimer(time.Until(p.until))
	defer timer.Stop()
	for {
		r, changed := p.target.get()
		if r.endpoint != nil && r != refused {
			p.route = r
			return nil
		}
		if r.endpoint != nil {
			r.inFlight.Add(-1)
		}
		if p.table.lookup(p.name) != p.target {
			return errForgotten
		}
		if err := p.pause(ctx, r, changed, timer); err != nil {
			return err
		}
		refused = nil
	}
}

// pause waits for another route; where there is one that refused, only for a moment.
func (p *passage) pause(ctx context.Context, r *route, changed <-chan struct{}, timer *time.Timer) error {
	var again <-chan time.Time
	if r.endpoint != nil {
		again = time.After(retryPause)
	}
	select {
	case <-changed:
		return nil
	case <-again:
		return nil
	case <-timer.C:
		return errNoRoute
	case <-ctx.Done():
		return ctx.Err()
	}
}

// transport sends a request where the route leads, and again where the next one leads if it provably was not sent.
type transport struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	p := passageOf(req.Context())
	var refused *route
	for {
		if err := p.enter(req.Context(), refused); err != nil {
			return nil, err
		}
		resp, err, unsent := t.attempt(req, p.route)
		if err == nil || !unsent || req.Context().Err() != nil {
			return resp, err
		}
		refused = p.route
	}
}

// attempt sends the request once; unsent means that the upstream cannot have seen any of it and that the body is whole.
func (t *transport) attempt(req *http.Request, r *route) (resp *http.Response, err error, unsent bool) {
	var wrote atomic.Bool
	trace := &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }}
	out := req.Clone(httptrace.WithClientTrace(req.Context(), trace))
	out.URL.Scheme, out.URL.Host = r.endpoint.Scheme, r.endpoint.Host
	out.URL.Path = r.endpoint.Path + req.URL.Path
	body := &trackedBody{ReadCloser: req.Body, left: req.ContentLength}
	if req.Body != nil && req.Body != http.NoBody {
		out.Body = body // the transport closes what it was given; the proxy closes the real one
	}
	resp, err = t.base.RoundTrip(out)
	if err == nil {
		return resp, nil, false
	}
	return nil, err, !body.read.Load() && (dialFailed(err) || !wrote.Load())
}

func dialFailed(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// trackedBody knows whether any of it was read, survives being closed, and is not read beyond its announced end: an agent
// server may answer as soon as it has the whole body, upon which the incoming body is closed, and the client's look for
// more would find it so and cut the answer off.
type trackedBody struct {
	io.ReadCloser
	read atomic.Bool
	left int64 // bytes to come; negative = not announced
}

func (b *trackedBody) Read(p []byte) (int, error) {
	b.read.Store(true)
	if b.left < 0 {
		return b.ReadCloser.Read(p)
	}
	if b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	if b.left -= int64(n); b.left == 0 {
		err = io.EOF
	}
	return n, err
}

// Close does nothing: the body belongs to the incoming request.
func (b *trackedBody) Close() error { return nil }
