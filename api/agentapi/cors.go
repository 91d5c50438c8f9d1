package agentapi

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// CORS is what `http.cors` of the graph configuration says beside the origins (reference 1); zero values take the defaults.
type CORS struct {
	OriginPattern *regexp.Regexp // origins that match it as a whole are allowed too
	Methods       []string       // all
	Headers       []string       // whatever a preflight asks for
	Expose        []string       // beside those that clients of this API need
	Credentials   *bool          // allowed for named origins, never with "*"
	MaxAge        *int           // seconds; 600
}

func exposed() []string {
	return []string{"content-location", "location", "x-pagination-total", "x-pagination-next", "x-request-id"}
}

// cors sets the headers browsers ask for and answers preflights; true means that the request is answered.
func (a *API) cors(w http.ResponseWriter, r *http.Request) bool {
	origin, h, c := r.Header.Get("Origin"), w.Header(), a.cfg.CORS
	if origin == "" {
		return false
	}
	switch {
	case slices.Contains(a.cfg.AllowOrigins, "*"):
		h.Set("Access-Control-Allow-Origin", "*")
	case a.allows(origin):
		h.Set("Access-Control-Allow-Origin", origin)
		if c.Credentials == nil || *c.Credentials {
			h.Set("Access-Control-Allow-Credentials", "true")
		}
		h.Add("Vary", "Origin")
	}
	h.Set("Access-Control-Expose-Headers", strings.Join(slices.Concat(exposed(), c.Expose), ", "))
	if !preflight(r) {
		return false
	}
	h.Set("Access-Control-Allow-Methods", listed(c.Methods, "GET, POST, PUT, PATCH, DELETE, OPTIONS, HEAD"))
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", listed(c.Headers, asked))
	}
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	age := 600
	if c.MaxAge != nil {
		age = *c.MaxAge
	}
	h.Set("Access-Control-Max-Age", strconv.Itoa(age))
	w.WriteHeader(http.StatusNoContent)
	return true
}

func (a *API) allows(origin string) bool {
	if slices.Contains(a.cfg.AllowOrigins, origin) {
		return true
	}
	p := a.cfg.CORS.OriginPattern
	return p != nil && p.FindString(origin) == origin
}

func preflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// listed joins a list; without one, or with "*", it is the fallback.
func listed(list []string, fallback string) string {
	if len(list) == 0 || slices.Contains(list, "*") {
		return fallback
	}
	return strings.Join(list, ", ")
}
