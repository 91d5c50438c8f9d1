package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
)

// RevisionHeader names, on every answer of an agent server, the revision that gave it (control-plane reference 10, row 5).
const RevisionHeader = "X-Slipway-Revision"

// Gateway is the proxy. It is an http.Handler for the paths below Config.Prefix and a slipway.Router; all methods may be
// called at any time by anybody.
type Gateway struct {
	cfg   Config
	log   *slog.Logger
	table table
	base  *http.Transport
	proxy *httputil.ReverseProxy
}

var _ slipway.Router = (*Gateway)(nil)

// New returns a Gateway that knows no deployment yet.
func New(cfg Config, log *slog.Logger) *Gateway {
	g := &Gateway{cfg: cfg.withDefaults(), log: log}
	g.table = table{byName: map[string][]*target{}, byID: map[string]*target{}}
	dialer := &net.Dialer{Timeout: g.cfg.DialTimeout, KeepAlive: 30 * time.Second}
	g.base = &http.Transport{
		DialContext:         dialer.DialContext,
		MaxIdleConnsPerHost: g.cfg.IdlePerHost,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true, // bodies pass as they are
		WriteBufferSize:     16 << 10,
		ReadBufferSize:      16 << 10,
	}
	g.proxy = &httputil.ReverseProxy{
		Rewrite:        g.rewrite,
		Transport:      &transport{base: g.base},
		FlushInterval:  -1, // streams are relayed as they come
		ModifyResponse: mark,
		ErrorHandler:   g.fail,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BufferPool:     newBuffers(),
	}
	return g
}

// Close drops idle connections.
func (g *Gateway) Close() { g.base.CloseIdleConnections() }

// Route implements slipway.Router. An endpoint that is not a URL counts as none and is logged.
func (g *Gateway) Route(name, deploymentID, revisionID, endpoint string) {
	var u *url.URL
	if endpoint != "" {
		parsed, err := url.Parse(endpoint)
		if err != nil || parsed.Host == "" {
			g.log.Error("endpoint is not a URL", "deployment", name, "revision_id", revisionID, "endpoint", endpoint)
		} else {
			u = parsed
			u.Path = strings.TrimRight(u.Path, "/")
		}
	}
	g.table.enter(name, deploymentID).set(revisionID, u)
}

// Unroute implements slipway.Router: requests that wait are answered 404, those in flight go on.
func (g *Gateway) Unroute(deploymentID string) {
	if t := g.table.forget(deploymentID); t != nil {
		t.set("", nil)
		t.wake()
	}
}

// wake lets those who wait look again although the route is the same.
func (t *target) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.changed)
	t.changed = make(chan struct{})
}

// InFlight returns how many requests, open streams included, are with the revision now.
func (g *Gateway) InFlight(deploymentID, revisionID string) int {
	t := g.table.find(deploymentID)
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.flights[revisionID]; n != nil {
		return int(n.Load())
	}
	return 0
}

// ServeHTTP relays a request to the deployment its path names.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, _, ok := g.split(r.URL.EscapedPath())
	if !ok {
		refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	t := g.table.lookup(name)
	if t == nil {
		refuse(w, http.StatusNotFound, fmt.Sprintf("there is no deployment %q here; see `slipway list`", name))
		return
	}
	p := &passage{table: &g.table, name: name, target: t, until: time.Now().Add(g.cfg.Wait)}
	defer p.done()
	g.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), passageKey{}, p)))
}

// split takes the deployment's name off an escaped path.
func (g *Gateway) split(path string) (name, rest string, ok bool) {
	path, ok = strings.CutPrefix(path, g.cfg.Prefix)
	if !ok {
		return "", "", false
	}
	name, rest, _ = strings.Cut(path, "/")
	return name, "/" + rest, name != ""
}

// rewrite strips the prefix and tells the agent server how it was reached.
func (g *Gateway) rewrite(pr *httputil.ProxyRequest) {
	name, rest, _ := g.split(pr.In.URL.EscapedPath())
	pr.Out.URL.Path, pr.Out.URL.RawPath = rest, ""
	if plain, err := url.PathUnescape(rest); err == nil {
		pr.Out.URL.Path, pr.Out.URL.RawPath = plain, rest
	}
	pr.Out.URL.Scheme, pr.Out.URL.Host = "http", "agent" // the transport fills in the endpoint
	pr.Out.URL.RawQuery = pr.In.URL.RawQuery
	pr.Out.Host = pr.In.Host
	g.forwarded(pr)
	pr.Out.Header.Set("X-Forwarded-Prefix", strings.TrimSuffix(g.cfg.Prefix, "/")+"/"+name)
}

// forwarded says from whom the request is and which address was asked; a trusted proxy's word on both goes on.
func (g *Gateway) forwarded(pr *httputil.ProxyRequest) {
	const from = "X-Forwarded-For"
	trusted := g.cfg.trusts(pr.In.RemoteAddr)
	if trusted {
		pr.Out.Header[from] = pr.In.Header[from]
	}
	pr.SetXForwarded()
	for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto"} {
		if said := pr.In.Header.Get(name); trusted && said != "" {
			pr.Out.Header.Set(name, said)
		}
	}
}

// mark names the revision on its answer.
func mark(resp *http.Response) error {
	if p := passageOf(resp.Request.Context()); p != nil && p.route != nil {
		resp.Header.Set(RevisionHeader, p.route.revisionID)
	}
	return nil
}

// fail answers a request that no agent server answered.
func (g *Gateway) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := passageOf(r.Context())
	switch {
	case r.Context().Err() != nil: // the client left; nobody reads the answer
		w.WriteHeader(http.StatusBadGateway)
	case errors.Is(err, errForgotten):
		refuse(w, http.StatusNotFound, fmt.Sprintf("there is no deployment %q here; see `slipway list`", p.name))
	case errors.Is(err, errNoRoute):
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable,
			fmt.Sprintf("no revision of deployment %q is ready to serve; try again, and see `slipway get %s`", p.name, p.name))
	default:
		g.log.Warn("agent server did not answer", "deployment", p.name, "error", err.Error())
		refuse(w, http.StatusBadGateway, fmt.Sprintf("the agent server of deployment %q ended the connection before it answered", p.name))
	}
}

func refuse(w http.ResponseWriter, status int, detail string) {
	body, _ := json.Marshal(map[string]string{"detail": detail})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// buffers lends the proxy its copy buffers.
type buffers struct{ pool sync.Pool }

func newBuffers() *buffers {
	return &buffers{pool: sync.Pool{New: func() any { return new([32 << 10]byte) }}}
}

// Get implements httputil.BufferPool.
func (b *buffers) Get() []byte { return b.pool.Get().(*[32 << 10]byte)[:] }

// Put implements httputil.BufferPool.
func (b *buffers) Put(buf []byte) { b.pool.Put((*[32 << 10]byte)(buf)) }
