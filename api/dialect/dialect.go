// Package dialect speaks upstream's names at the edge of the control API (control-plane reference, "Aliases accepted on
// input"). At the root a request may use either spelling and every answer is canonical. Below Mount the very same API speaks
// upstream's names in both directions, so that stock clients read back what they wrote. table.go is the one place that
// knows names.
package dialect

import (
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/slipway-dev/slipway/api/problem"
)

// Mount is the path prefix below which upstream's dialect is spoken.
const Mount = "/api-host"

// maxBody bounds the body that is translated, in bytes. A larger one passes as it is, for the API to refuse: it is beyond the
// API's own bound.
const maxBody = 26 << 20

// patches are the requests in which an empty array of the table's `absent` leaves what is stored.
var patches = regexp.MustCompile(`^(PATCH /v2/deployments/[^/]+|POST /v2/deployments/[^/]+/revisions)$`)

// Dialect is the control API in both dialects.
type Dialect struct {
	api  http.Handler
	docs func(description []byte) []byte

	root, mount, patch *tree // of requests
	out, failed        *tree // of answers
	description        func() []byte
	page               func() []byte
}

var _ http.Handler = (*Dialect)(nil)

// New wraps the canonical control API. docs renders the page that lists the calls of an interface description.
func New(api http.Handler, docs func(description []byte) []byte) *Dialect {
	d := &Dialect{
		api: api, docs: docs,
		root: inward(nil), mount: mounted(kinds), patch: patching(kinds), out: outward(), failed: failing(),
	}
	d.description = sync.OnceValue(d.describe)
	d.page = sync.OnceValue(func() []byte { return d.docs(d.description()) })
	return d
}

// ServeHTTP answers a request in the dialect of its path.
func (d *Dialect) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, below := strings.CutPrefix(r.URL.Path, Mount)
	if !below || path != "" && path[0] != '/' {
		d.serve(w, r, r.URL.Path, d.root, nil)
		return
	}
	switch path {
	case "/openapi.json":
		send(w, r, "application/json", d.description)
	case "/docs":
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		send(w, r, "text/html; charset=utf-8", d.page)
	default:
		in := d.mount
		if r.Method != http.MethodGet && patches.MatchString(r.Method+" "+path) {
			in = d.patch
		}
		d.serve(w, r, path, in, d)
	}
}

// serve hands the request to the API in canonical names. speak translates its answer; nil leaves it canonical.
func (d *Dialect) serve(w http.ResponseWriter, r *http.Request, path string, in *tree, speak *Dialect) {
	if strings.HasPrefix(path, "/o/") && statusPath.MatchString(path) {
		sendStatusPage(w, r)
		return
	}
	canonical, query := canonicalPath(path), in.query(r.URL.RawQuery)
	if canonical != r.URL.Path || query != r.URL.RawQuery {
		r = moved(r, canonical, query)
	}
	body := newBody(r, canonical, in)
	if body == nil && speak == nil {
		d.api.ServeHTTP(w, r)
		return
	}
	if body != nil {
		r = withBody(r, body)
	}
	a := &answer{ResponseWriter: w, speak: speak, body: body, method: r.Method}
	d.api.ServeHTTP(a, r)
	a.finish()
}

// moved returns the request with another path and query.
func moved(r *http.Request, path, query string) *http.Request {
	out := new(http.Request)
	*out = *r
	u := *r.URL
	u.Path, u.RawQuery = path, query
	if u.RawPath != "" { // kept where the escaped form begins like the plain one, which is all that is replaced
		u.RawPath = canonicalPath(strings.TrimPrefix(u.RawPath, Mount))
	}
	if path == "" {
		u.Path = "/"
	}
	out.URL = &u
	return out
}

func send(w http.ResponseWriter, r *http.Request, contentType string, body func() []byte) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		refuseMethod(w, r)
		return
	}
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(body()) // the client is gone if this fails
}

// refuseMethod answers a request that does more than read a page.
func refuseMethod(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Allow", "GET, HEAD")
	problem.Write(w, &problem.Answer{Status: http.StatusMethodNotAllowed, Text: "there is no " + r.Method + " " + r.URL.Path + ", only GET"})
}
