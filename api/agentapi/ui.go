package agentapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/slipway-dev/slipway"
)

// UI are the components of the application that browsers load (reference 9), as its build made them.
type UI struct {
	Files      fs.FS // of the bundle; its files can seek
	Components map[string]slipway.BundleUI
}

// longestComponent bounds the name of a component, in bytes.
const longestComponent = 1000

// uiType is the media type of a file that the bundler made; what is neither script nor style sheet is bytes.
func uiType(name string) string {
	return cmp.Or(map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}[path.Ext(name)], "application/octet-stream")
}

func (u UI) of(graph string) (slipway.BundleUI, error) {
	built, ok := u.Components[graph]
	if ok {
		return built, nil
	}
	known := "the application has none"
	if len(u.Components) > 0 {
		known = "there are components of " + strings.Join(slices.Sorted(maps.Keys(u.Components)), ", ")
	}
	return built, slipway.Errorf(slipway.CodeNotFound, "there are no components of %q: name them in ui of the graph configuration and deploy again; %s", excerptOf(graph), known)
}

func excerptOf(name string) string {
	if len(name) > 100 {
		return strings.ToValidUTF8(name[:100], "") + "…"
	}
	return name
}

// loadUI answers POST /ui/{graph}: the tags that load a component. The stock client puts them into a shadow root, whose id it
// writes in place of {{shadowRootId}}.
func (a *API) loadUI(w http.ResponseWriter, r *http.Request) error {
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	b.required("name")
	name := b.optional("name")
	if name != nil && (*name == "" || len(*name) > longestComponent) {
		b.wrong("name", "has %d bytes; give the name of a component, of at most %d", len(*name), longestComponent)
	}
	if err := b.err(); err != nil {
		return err
	}
	graph := r.PathValue("graph")
	built, err := a.cfg.UI.of(graph)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = io.WriteString(w, uiTags(publicURL(r, a.cfg.MountPrefix)+"/ui/"+url.PathEscape(graph), graph, *name, built))
	return nil
}

// uiTags are the style sheets and the script of a component, below an address.
func uiTags(at, graph, name string, built slipway.BundleUI) string {
	var styles, scripts []string
	for _, f := range built.Files {
		address := html.EscapeString(at + "/" + url.PathEscape(f.Name) + "?v=" + f.SHA256)
		switch path.Ext(f.Name) {
		case ".css":
			styles = append(styles, fmt.Sprintf(`<link rel="stylesheet" href="%s" />`, address))
		case ".js":
			scripts = append(scripts, fmt.Sprintf(`<script src="%s" onload='__LGUI_%s.render(%s, "{{shadowRootId}}")'></script>`, address, identifier(graph), quoted(name)))
		}
	}
	return strings.Join(append(styles, scripts...), "\n")
}

// quoted writes a string in JavaScript for an attribute in single quotes; the client's placeholder is not found in it.
func quoted(s string) string {
	raw, _ := json.Marshal(s) // a string can be written
	return strings.NewReplacer("'", "&#39;", "{{", `\u007b\u007b`).Replace(string(raw))
}

// identifier is how the bundler names what a graph's script defines: each UTF-16 unit that is no letter or digit of ASCII is _.
func identifier(graph string) string {
	var b strings.Builder
	for _, r := range graph {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Repeat("_", utf16.RuneLen(r)))
		}
	}
	return b.String()
}

// publicURL is where browsers reach this server, as far as the proxies before it say so. Its scheme is left to the page where
// a proxy may have ended TLS without telling; of the own machine that cannot be, and pages served over TLS may load from it.
func publicURL(r *http.Request, mount string) string {
	host, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Host"), ",")
	host = cmp.Or(strings.TrimSpace(host), r.Host)
	scheme := ""
	if schemeOf(r) == "https" {
		scheme = "https:"
	} else if ownMachine(host) {
		scheme = "http:"
	}
	prefix := strings.TrimSuffix(r.Header.Get("X-Forwarded-Prefix"), "/")
	if !strings.HasPrefix(prefix, "/") || strings.HasPrefix(prefix, "//") {
		prefix = ""
	}
	return scheme + "//" + host + prefix + mount
}

func ownMachine(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// getUI answers GET /ui/{graph}/{file}. Who asks for the version that is there may keep it for good.
func (a *API) getUI(w http.ResponseWriter, r *http.Request) error {
	built, err := a.cfg.UI.of(r.PathValue("graph"))
	if err != nil {
		return err
	}
	name := r.PathValue("file")
	i := slices.IndexFunc(built.Files, func(f slipway.BundleUIFile) bool { return f.Name == name })
	if i < 0 {
		return slipway.Errorf(slipway.CodeNotFound, "the components of %q have no file %q: load what POST /ui/%s names", r.PathValue("graph"), excerptOf(name), r.PathValue("graph"))
	}
	file, err := a.cfg.UI.Files.Open(path.Join(built.Dir, name))
	if err != nil {
		return fmt.Errorf("open a component: %w", err)
	}
	defer func() { _ = file.Close() }()
	seekable, ok := file.(io.ReadSeeker)
	if !ok {
		return fmt.Errorf("open a component: %s cannot seek", name)
	}
	h := w.Header()
	h.Set("Content-Type", uiType(name))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin") // pages that isolate themselves load it, too
	h.Set("ETag", `"`+built.Files[i].SHA256+`"`)
	h.Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == built.Files[i].SHA256 {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	r.Header.Del("Range") // nobody loads half a script
	http.ServeContent(w, r, name, time.Time{}, seekable)
	return nil
}
