package dialect

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/slipway-dev/slipway/api/problem"
)

// answer is the writer of an answer. JSON is kept until it is complete and goes out in upstream's names; everything else
// passes as it comes. Where the request's body contradicts itself, what the API makes of that is replaced by the reason.
type answer struct {
	http.ResponseWriter
	speak  *Dialect // nil = the answer stays canonical
	body   *body    // nil = the request has none that is translated
	method string

	status int
	kept   *bytes.Buffer // nil = the answer passes
	mute   bool          // what the API says is dropped
}

// WriteHeader decides what becomes of the answer.
func (a *answer) WriteHeader(status int) {
	if a.status != 0 {
		return
	}
	if status >= 200 {
		a.status = status
	}
	if a.body != nil && len(a.body.problems) > 0 {
		a.mute = true
		return
	}
	h := a.Header()
	if a.speak != nil {
		if to := h.Get("Location"); strings.HasPrefix(to, "/") {
			h.Set("Location", Mount+upstreamPath(to))
		}
		if a.method != http.MethodHead && h.Get("Content-Encoding") == "" && jsonText(h.Get("Content-Type"), false) {
			a.kept = new(bytes.Buffer)
			return
		}
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write keeps, passes or drops a part of the answer.
func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	switch {
	case a.mute:
		return len(p), nil
	case a.kept != nil:
		return a.kept.Write(p)
	}
	return a.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Flush sends what has passed so far.
func (a *answer) Flush() {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if f, ok := a.ResponseWriter.(http.Flusher); ok && a.kept == nil && !a.mute {
		f.Flush()
	}
}

// finish sends what was kept.
func (a *answer) finish() {
	switch {
	case a.mute:
		a.Header().Del("Content-Length")
		problem.Write(a.ResponseWriter, a.body.problems.Err())
	case a.kept != nil:
		t := a.speak.out
		if a.status >= http.StatusBadRequest {
			t = a.speak.failed
		}
		text, _ := t.translate(a.kept.Bytes())
		a.Header().Del("Content-Length")
		a.ResponseWriter.WriteHeader(a.status)
		_, _ = a.ResponseWriter.Write(text) // the client is gone if this fails
	}
}
