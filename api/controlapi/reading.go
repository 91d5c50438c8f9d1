package controlapi

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Whoever sends a body holds a connection, and sometimes a place that others wait for. So none is waited for without end.
const (
	// bodyTime is how long a body of JSON may take as a whole.
	bodyTime = 30 * time.Second
	// silence is how long the sender of a source archive may pause; as a whole it may take as long as its line needs.
	silence = time.Minute
)

// deadlines are those of the connection that a body comes from.
type deadlines interface{ SetReadDeadline(time.Time) error }

// timed is a body that must come in time. At its end the server takes the deadline off the connection.
type timed struct {
	io.Reader
	conn deadlines
	time time.Duration
	each bool // the time is that of every read, not of all
	set  bool
	cut  bool // it ended before its end, which is its sender's fault
}

// Read implements io.Reader.
func (t *timed) Read(p []byte) (int, error) {
	if t.each || !t.set {
		t.set = true
		_ = t.conn.SetReadDeadline(time.Now().Add(t.time)) // a connection without deadlines has none to keep
	}
	n, err := t.Reader.Read(p)
	t.cut = t.cut || err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded)
	return n, err
}

// timely is middleware that bounds the time a body may take, whoever reads it.
func (a *api) timely(ctx huma.Context, next func(huma.Context)) {
	next(&punctual{inner: ctx, time: a.cfg.BodyTime})
}

// punctual is a context with a timed body.
type punctual struct {
	inner
	time time.Duration
	body *timed
}

// BodyReader implements huma.Context.
func (p *punctual) BodyReader() io.Reader {
	if p.body == nil {
		from := p.inner.BodyReader()
		if from == nil {
			return nil
		}
		p.body = &timed{Reader: from, conn: p.inner, time: p.time}
	}
	return p.body
}

// SetStatus tells a body that was cut off, which the framework takes for its own fault, from what is really that.
func (p *punctual) SetStatus(code int) {
	if code == http.StatusInternalServerError && p.body != nil && p.body.cut {
		code = http.StatusBadRequest
	}
	p.inner.SetStatus(code)
}

// SetReadDeadline does nothing: the framework would set a time of its own, after others have read.
func (p *punctual) SetReadDeadline(time.Time) error { return nil }

// Unwrap returns the context around which this one is, for what must reach the request itself.
func (p *punctual) Unwrap() huma.Context { return p.inner }

// timedBody is the body of a request that the framework does not read.
func timedBody(w http.ResponseWriter, r *http.Request, limit time.Duration, each bool) io.Reader {
	return &timed{Reader: r.Body, conn: http.NewResponseController(w), time: limit, each: each}
}
