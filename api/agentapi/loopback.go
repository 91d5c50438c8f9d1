package agentapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway/agent"
)

// ServeExchange answers a request that user code makes of its own server: the built-in routes, and unless the request is an
// inner one the application's own app, as for any client. Its path has no mount prefix. What the context says of the user
// holds; an inner request acts for whoever the outer one acts for.
func (a *API) ServeExchange(ctx context.Context, x agent.Exchange) {
	q := x.Request()
	w := &exchangeWriter{ctx: ctx, x: x, header: http.Header{}}
	r, err := requestFrom(ctx, x)
	switch {
	case err != nil:
		writeDetail(w, http.StatusBadRequest, err.Error())
	case q.WebSocket:
		writeDetail(w, http.StatusNotFound, "Not Found")
	default:
		a.serveInside(w, r, q.Inner)
	}
	w.finish()
}

func (a *API) serveInside(w *exchangeWriter, r *http.Request, inner bool) {
	defer func() {
		if p := recover(); p == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
			w.x.HangUp(0, "the answer broke off")
		} else if p != nil {
			panic(p) // recoverPanic below lets nothing else pass
		}
	}()
	defer a.recoverPanic(w, r)
	a.identify(w, r)
	if inner {
		a.builtIn(w, r)
		return
	}
	a.outer(w, r)
}

// requestFrom makes a request of the standard library's of what user code asks.
func requestFrom(ctx context.Context, x agent.Exchange) (*http.Request, error) {
	q := x.Request()
	target, err := url.ParseRequestURI(q.Target)
	if err != nil {
		return nil, errors.New("the path " + strconv.Quote(q.Target) + " cannot be read")
	}
	if u := outerUser(q); u != nil {
		ctx = agent.WithUser(ctx, u)
	}
	r := (&http.Request{
		Method: q.Method, URL: target, RequestURI: q.Target, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		RemoteAddr: q.Client, ContentLength: -1, Body: io.NopCloser(&exchangeReader{ctx: ctx, x: x}),
	}).WithContext(ctx)
	for _, h := range q.Headers {
		if strings.EqualFold(h[0], "host") {
			r.Host = toBytes(h[1])
		} else if !hopByHop(h[0]) {
			r.Header.Add(h[0], toBytes(h[1]))
		}
	}
	if n, err := strconv.ParseInt(r.Header.Get("Content-Length"), 10, 64); err == nil && n >= 0 {
		r.ContentLength = n
	}
	return r, nil
}

// outerUser is the user of the request that an inner one comes from.
func outerUser(q agent.HTTPRequest) *agent.User {
	if q.Outer == nil {
		return nil
	}
	document := q.Outer.Request().User
	if len(document) == 0 || string(document) == "null" {
		return nil
	}
	u, err := agent.ParseUser(document)
	if err != nil {
		return nil
	}
	return u
}

// exchangeReader is the body of a request of user code.
type exchangeReader struct {
	ctx  context.Context
	x    agent.Exchange
	rest []byte
	end  bool
}

// Read gives the next bytes.
func (b *exchangeReader) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		if b.end {
			return 0, io.EOF
		}
		part, err := b.x.Receive(b.ctx)
		if err != nil {
			return 0, err
		}
		b.rest, b.end = part.Data, part.End
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// exchangeWriter answers a request of user code; every write leaves at once.
type exchangeWriter struct {
	ctx    context.Context
	x      agent.Exchange
	header http.Header
	begun  bool
}

// Header is the answer's.
func (w *exchangeWriter) Header() http.Header { return w.header }

// Flush has nothing to do.
func (w *exchangeWriter) Flush() {}

// WriteHeader begins the answer.
func (w *exchangeWriter) WriteHeader(status int) {
	if w.begun || status < 200 {
		return
	}
	w.begun = true
	answer := agent.HTTPResponse{Status: status}
	for name, values := range w.header {
		for _, v := range values {
			answer.Headers = append(answer.Headers, [2]string{strings.ToLower(name), fromBytes(v)})
		}
	}
	_ = w.x.Respond(answer) // whoever has gone is seen by the writes
}

// Write sends a part of the body.
func (w *exchangeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if err := w.x.Send(w.ctx, agent.Part{Data: p}); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *exchangeWriter) finish() {
	w.WriteHeader(http.StatusOK)
	if w.x.Send(w.ctx, agent.Part{End: true}) == nil {
		w.x.Drop()
	}
}
