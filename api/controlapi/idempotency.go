package controlapi

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/authn"
	"github.com/slipway-dev/slipway/control"
)

// idempotencyKey is the header by which a client says that a request is a repetition (control-plane reference 1).
const idempotencyKey = "Idempotency-Key"

var idempotencyForm = regexp.MustCompile(`^[\x21-\x7e]{1,255}$`)

// keptHeaders are the headers of an answer that matter when it is repeated.
var keptHeaders = []string{"Content-Type", "Location", "Retry-After"}

// keyed adds the header to the description of calls that honour it.
func keyed(op huma.Operation) huma.Operation {
	if op.Method == http.MethodPost || op.Method == http.MethodPatch {
		one, most := 1, 255
		op.Parameters = append(op.Parameters, &huma.Param{
			Name: idempotencyKey, In: "header", Description: "repeats the answer of an earlier request with the same key and body, for 24 hours",
			Schema: &huma.Schema{Type: huma.TypeString, MinLength: &one, MaxLength: &most},
		})
		if !slices.Contains(op.Errors, http.StatusConflict) { // the first request with the key runs still
			op.Errors = append(op.Errors, http.StatusConflict)
		}
	}
	return op
}

// idempotent is middleware that carries out a request with an Idempotency-Key once.
func (a *api) idempotent(ctx huma.Context, next func(huma.Context)) {
	op := ctx.Operation()
	key := ctx.Header(idempotencyKey)
	// Whoever only reads has no effects to repeat, and is not to push out of the bounds what is kept for those who have.
	reads := authn.Principal(ctx.Context()).Role == slipway.RoleViewer
	if key == "" || reads || len(op.Security) == 0 || op.Method != http.MethodPost && op.Method != http.MethodPatch {
		next(ctx)
		return
	}
	if !idempotencyForm.MatchString(key) {
		var problems slipway.Problems
		problems.Add([]any{"header", idempotencyKey}, "the Idempotency-Key must have 1 to 255 visible ASCII characters; a uuid is a good one")
		a.refuse(ctx, problems.Err())
		return
	}
	body, whole := readBody(ctx.BodyReader(), op.MaxBodyBytes)
	if !whole { // too large or cut off: the call itself says so
		next(&replaying{inner: ctx, body: body})
		return
	}
	a.once(ctx, key, body, next)
}

// readBody reads a body up to its limit and one byte more; what it returns yields the whole of it again.
func readBody(r io.Reader, limit int64) (body *rereader, whole bool) {
	if r == nil {
		return &rereader{Reader: bytes.NewReader(nil)}, true
	}
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil { // said again: a reader that has failed may well say that it is at its end next time
		return &rereader{Reader: io.MultiReader(bytes.NewReader(text), failed{err})}, false
	}
	if int64(len(text)) > limit {
		return &rereader{Reader: io.MultiReader(bytes.NewReader(text), r)}, false
	}
	return &rereader{Reader: bytes.NewReader(text), text: text}, true
}

// failed is what is left of a reader that has failed.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }

type rereader struct {
	io.Reader
	text []byte
}

func (a *api) once(ctx huma.Context, key string, body *rereader, next func(huma.Context)) {
	url := ctx.URL()
	attempt, answer, err := a.svc.BeginKeyed(ctx.Context(), authn.Principal(ctx.Context()), control.KeyedRequest{
		Method: ctx.Method(), Path: url.Path, Query: url.RawQuery, Key: key, Body: body.text,
	})
	switch {
	case err != nil:
		a.refuse(ctx, err)
	case answer != nil:
		ctx.SetHeader("Idempotency-Replayed", "true")
		sendAnswer(ctx, *answer)
	default:
		a.carryOut(ctx, attempt, body, next)
	}
}

// carryOut keeps the answer before it is sent: what a client has seen is repeated, whatever dies.
func (a *api) carryOut(ctx huma.Context, attempt *control.Attempt, body *rereader, next func(huma.Context)) {
	kept := &replaying{inner: ctx, body: body, ctx: attempt.Context(ctx.Context()), header: map[string]string{}}
	answered := false
	defer func() {
		if !answered { // a panic; the server's own handler deals with it
			attempt.Abandoned(context.WithoutCancel(ctx.Context()))
		}
	}()
	next(kept)
	answered = true
	answer := control.Answer{Status: kept.status, Header: map[string]string{}, Body: kept.buffer.Bytes()}
	for _, name := range keptHeaders {
		if value, ok := kept.header[name]; ok {
			answer.Header[name] = value
		}
	}
	if answer.Status == 0 {
		answer.Status = http.StatusOK
	}
	if err := attempt.Answered(ctx.Context(), answer); err != nil {
		a.cfg.Log.Warn("answer to a keyed request not kept", "error", err)
	}
	answer.Header = kept.header
	sendAnswer(ctx, answer)
}

// sendAnswer writes a whole answer.
func sendAnswer(ctx huma.Context, answer control.Answer) {
	for name, value := range answer.Header {
		ctx.SetHeader(name, value)
	}
	ctx.SetStatus(answer.Status)
	if len(answer.Body) > 0 {
		_, _ = ctx.BodyWriter().Write(answer.Body) // the client is gone if this fails; the answer is kept
	}
}

// inner is huma.Context under a name that can be embedded beside its own method Context.
type inner = huma.Context

// replaying is a context whose body was read before. With header it holds the answer back.
type replaying struct {
	inner
	body   *rereader
	ctx    context.Context
	header map[string]string
	status int
	buffer bytes.Buffer
}

// BodyReader yields the body again.
func (r *replaying) BodyReader() io.Reader { return r.body }

// Context bears the attempt.
func (r *replaying) Context() context.Context {
	if r.ctx == nil {
		return r.inner.Context()
	}
	return r.ctx
}

// SetStatus holds the status back.
func (r *replaying) SetStatus(code int) {
	if r.header == nil {
		r.inner.SetStatus(code)
		return
	}
	r.status = code
}

// Status is the status set last.
func (r *replaying) Status() int {
	if r.header == nil {
		return r.inner.Status()
	}
	return r.status
}

// SetHeader holds the header back.
func (r *replaying) SetHeader(name, value string) {
	if r.header == nil {
		r.inner.SetHeader(name, value)
		return
	}
	r.header[http.CanonicalHeaderKey(name)] = value
}

// AppendHeader sets the header: no call answers one twice.
func (r *replaying) AppendHeader(name, value string) { r.SetHeader(name, value) }

// BodyWriter holds the body back.
func (r *replaying) BodyWriter() io.Writer {
	if r.header == nil {
		return r.inner.BodyWriter()
	}
	return &r.buffer
}
