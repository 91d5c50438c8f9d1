package dialect

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/slipway-dev/slipway"
)

// mostGrown bounds the room that is made for a body before any of it has come, in bytes.
const mostGrown = 64 << 10

// errTwoNames ends the reading of a body that names one field twice, with different values.
var errTwoNames = errors.New("the body has one field under two names")

// body is a request's JSON body in canonical names. It is read and translated when the API first asks for it, which is after
// it has found out who asks; problems tell afterwards whether the two spellings of a field contradict each other.
type body struct {
	from     io.ReadCloser
	size     int64 // as announced; below 0 if nobody knows
	tree     *tree
	text     io.Reader // nil = not read yet
	err      error
	problems slipway.Problems
}

// newBody returns nil for a request whose body passes byte for byte.
func newBody(r *http.Request, path string, t *tree) *body {
	if r.Body == nil || r.Body == http.NoBody || !carries(path) || r.Header.Get("Content-Encoding") != "" || !jsonText(r.Header.Get("Content-Type"), true) {
		return nil
	}
	return &body{from: r.Body, size: r.ContentLength, tree: t}
}

// jsonText says whether a content type is plain JSON; absent is what its absence means.
func jsonText(contentType string, absent bool) bool {
	if contentType == "" || contentType == "application/json" {
		return contentType != "" || absent
	}
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == "application/json"
}

func withBody(r *http.Request, b *body) *http.Request {
	out := new(http.Request)
	*out = *r
	out.Body = b
	return out
}

// Read reads the translated body.
func (b *body) Read(p []byte) (int, error) {
	if b.err == nil && b.text == nil {
		b.load()
	}
	if b.err != nil {
		return 0, b.err
	}
	return b.text.Read(p)
}

// Close closes the request's own body.
func (b *body) Close() error { return b.from.Close() }

func (b *body) load() {
	var text bytes.Buffer
	text.Grow(int(min(max(b.size, 0), mostGrown)) + bytes.MinRead)
	n, err := text.ReadFrom(io.LimitReader(b.from, maxBody))
	switch {
	case err != nil:
		b.err = err
	case n == maxBody:
		b.text = io.MultiReader(&text, b.from)
	default:
		var out []byte
		if out, b.problems = b.tree.translate(text.Bytes()); len(b.problems) > 0 {
			b.err = errTwoNames
		}
		b.text = bytes.NewReader(out)
	}
}
