package agentapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/agent"
)

// AppConfig is what `http` of the graph configuration says of the application's own HTTP app.
type AppConfig struct {
	There     bool // http.app names one
	RouteAuth bool // enable_custom_route_auth: its routes are for authenticated users only
	AuthFirst bool // middleware_order auth_first: its middleware sees authenticated requests only
}

// outer answers a request of a client: by the application's own app, or by the built-in routes. The path has no mount prefix.
func (a *API) outer(w http.ResponseWriter, r *http.Request) {
	if !a.cfg.App.There || r.URL.Path == "/ok" { // health never waits for user code
		a.builtIn(w, r)
		return
	}
	app, err := a.engine.App(r.Context())
	if err != nil {
		if !a.cors(w, r) {
			a.fail(w, r, err)
		}
		return
	}
	own := owns(app, r)
	if !own && !app.Middleware && app.Routes != nil {
		a.builtIn(w, r)
		return
	}
	if (a.cfg.FixedCORS || !app.Middleware) && a.cors(w, r) {
		return // else the app's middleware decides
	}
	if r, err = a.admit(w, r, own, app); err != nil {
		a.fail(w, r, err)
		return
	}
	a.askApp(w, r, !own)
}

// builtIn answers a request by the built-in routes only.
func (a *API) builtIn(w http.ResponseWriter, r *http.Request) {
	if !a.cors(w, r) {
		a.route(w, r)
	}
}

// admit authenticates what must be before user code sees it: the app's own routes where they are guarded, and everything
// else where authentication comes before middleware. What the app cannot tell from its own counts as both, and so does, with
// middleware, what no built-in route has: the app's router may be less strict than the list of its routes. Preflights carry
// nobody's credentials.
func (a *API) admit(w http.ResponseWriter, r *http.Request, own bool, app *agent.PartInfo) (*http.Request, error) {
	if preflight(r) {
		return r, nil
	}
	_, pattern := a.mux.Handler(r)
	may := own || app.Routes == nil || pattern == ""
	if may && a.cfg.App.RouteAuth || !own && a.cfg.App.AuthFirst && app.Middleware {
		return a.authenticated(w, r, pattern)
	}
	return r, nil
}

// owns says whether a request is for a route of the app; an app that cannot tell its routes has none here.
func owns(app *agent.PartInfo, r *http.Request) bool {
	socket := isWebSocket(r)
	return slices.ContainsFunc(app.Routes, func(route agent.AppRoute) bool {
		switch route.Kind {
		case "mount":
			return under(route.Path, r.URL.Path)
		case "websocket":
			return socket && onPath(route.Path, r.URL.Path)
		}
		fits := route.Methods == nil || slices.Contains(route.Methods, r.Method)
		return !socket && fits && onPath(route.Path, r.URL.Path)
	})
}

// under says whether a path is one of a mounted app's.
func under(mount, path string) bool {
	rest, ok := cutPath(strings.TrimSuffix(mount, "/"), path)
	return ok && (rest == "" || rest[0] == '/')
}

func onPath(pattern, path string) bool {
	rest, ok := cutPath(pattern, path)
	return ok && rest == ""
}

// cutPath takes off a path what a pattern stands for: {name} for anything without a slash, {name:path} for all that is left.
func cutPath(pattern, path string) (rest string, ok bool) {
	for {
		open := strings.IndexByte(pattern, '{')
		if open < 0 {
			return strings.CutPrefix(path, pattern)
		}
		if path, ok = strings.CutPrefix(path, pattern[:open]); !ok {
			return "", false
		}
		end := strings.IndexByte(pattern[open:], '}')
		if end < 0 {
			return "", false
		}
		name, after := pattern[open:open+end], pattern[open+end+1:]
		if strings.HasSuffix(name, ":path") {
			return cutTail(after, path)
		}
		value := strings.IndexByte(path+"/", '/')
		if i := literal(after, path[:value]); i >= 0 {
			value = i
		}
		if value == 0 {
			return "", false
		}
		pattern, path = after, path[value:]
	}
}

// cutTail is cutPath after a {name:path}, whose end is wherever what follows it fits.
func cutTail(pattern, path string) (rest string, ok bool) {
	if pattern == "" {
		return "", true
	}
	for i := len(path); i >= 0; i-- {
		if rest, ok := cutPath(pattern, path[i:]); ok && rest == "" {
			return "", true
		}
	}
	return "", false
}

// literal is where, in a segment, the text that follows a parameter begins ("{name}.json"); -1 if none does.
func literal(pattern, segment string) int {
	end := strings.IndexAny(pattern, "{/")
	if end < 0 {
		end = len(pattern)
	}
	if end == 0 {
		return -1
	}
	return strings.LastIndex(segment, pattern[:end])
}
