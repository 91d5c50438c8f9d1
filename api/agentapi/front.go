package agentapi

import (
	"errors"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// identify echoes the client's request id or makes one.
func (a *API) identify(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("X-Request-Id")
	if id == "" && a.cfg.IDs != nil {
		id = a.cfg.IDs()
	}
	if id != "" {
		w.Header().Set("X-Request-Id", id)
		r.Header.Set("X-Request-Id", id) // for the application's own app
	}
}

// recoverPanic answers 500 for a handler that panicked; what happened stands in the log only.
func (a *API) recoverPanic(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
		panic(p)
	}
	a.cfg.Log.Error("request panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()), a.logged(r))
	writeDetail(w, http.StatusInternalServerError, "Internal server error")
}

// route dispatches; what no pattern matches is answered in JSON like every error.
func (a *API) route(w http.ResponseWriter, r *http.Request) {
	h, pattern := a.mux.Handler(r)
	r, err := a.authenticated(w, r, pattern)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	if pattern != "" {
		a.meter.measure(w, r, pattern, a.mux)
		return
	}
	a.meter.measure(w, r, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { unmatched(w, r, h) }))
}

// unmatched answers what no pattern matches with the router's status.
func unmatched(w http.ResponseWriter, r *http.Request, h http.Handler) {
	b := &bare{header: http.Header{}}
	h.ServeHTTP(b, r)
	if allow := b.header.Get("Allow"); allow != "" {
		w.Header().Set("Allow", allow)
	}
	writeDetail(w, b.status, map[int]string{404: "Not Found", 405: "Method Not Allowed"}[b.status])
}

// bare keeps the status and the headers of an answer and drops its body.
type bare struct {
	header http.Header
	status int
}

func (b *bare) Header() http.Header         { return b.header }
func (b *bare) Write(p []byte) (int, error) { return len(p), nil }
func (b *bare) WriteHeader(status int)      { b.status = status }

// statusOf is the one place that knows which status an error is (reference 1).
func statusOf(code slipway.Code) int {
	switch code {
	case slipway.CodeInvalid:
		return http.StatusUnprocessableEntity
	case slipway.CodeBadRequest:
		return http.StatusBadRequest
	case slipway.CodeUnauthenticated:
		return http.StatusUnauthorized
	case slipway.CodeForbidden:
		return http.StatusForbidden
	case slipway.CodeNotFound:
		return http.StatusNotFound
	case slipway.CodeConflict, slipway.CodeStale:
		return http.StatusConflict
	case slipway.CodeTooLarge:
		return http.StatusRequestEntityTooLarge
	case slipway.CodeUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// fail answers an error.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // nobody is there to read it
	}
	var refusal *agent.HTTPRefusal
	if errors.As(err, &refusal) {
		a.refuse(w, r, refusal)
		return
	}
	status := statusOf(slipway.ErrorCode(err))
	var e *slipway.Error
	text := "Internal server error"
	if status != http.StatusInternalServerError && errors.As(err, &e) {
		text = e.Error()
	} else {
		a.cfg.Log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err, a.logged(r))
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	writeDetail(w, status, strings.ToValidUTF8(text, "\uFFFD"))
}

// refuse answers what the application's own code wants its client to be told.
func (a *API) refuse(w http.ResponseWriter, r *http.Request, refusal *agent.HTTPRefusal) {
	for _, h := range refusal.Headers {
		if ours := http.CanonicalHeaderKey(h[0]); ours != "Content-Length" && ours != "Transfer-Encoding" && ours != "Content-Type" {
			w.Header().Add(h[0], h[1])
		}
	}
	if refusal.Status < 200 { // informational: nothing would be answered
		a.cfg.Log.Error("user code refused with a status that answers nothing", "path", r.URL.Path, "status", refusal.Status)
		refusal = &agent.HTTPRefusal{Status: http.StatusInternalServerError, Detail: "Internal server error"}
	}
	writeDetail(w, refusal.Status, strings.ToValidUTF8(refusal.Detail, "\uFFFD"))
}

func writeDetail(w http.ResponseWriter, status int, text string) {
	writeStatus(w, status, map[string]string{"detail": text})
}
