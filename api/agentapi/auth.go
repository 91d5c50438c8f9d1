package agentapi

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
)

// unasked says whether a request is answered without authentication (reference 12); the match is exact. Preflights have
// been answered before.
func unasked(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	return r.URL.Path == "/ok" || r.URL.Path == "/info" || strings.HasPrefix(r.URL.Path, "/ui/")
}

// authenticated returns the request with its user in its context. pattern is the route that will answer it, "" if none
// will: whoever is not known does not learn which. A request that the server itself makes for a user has him already.
func (a *API) authenticated(w http.ResponseWriter, r *http.Request, pattern string) (*http.Request, error) {
	if unasked(r) || agent.UserFrom(r.Context()) != nil {
		return r, nil
	}
	u, err := a.engine.Authenticate(r.Context(), engine.Sender{
		Header:   r.Header.Values,
		Describe: func(body bool) (agent.Authentication, error) { return a.credentials(w, r, pattern, body) },
	})
	if err != nil || u == nil {
		return r, err
	}
	return r.WithContext(agent.WithUser(r.Context(), u)), nil
}

// credentials describes a request to the application. Its body, where it is wanted, is read and put back.
func (a *API) credentials(w http.ResponseWriter, r *http.Request, pattern string, body bool) (agent.Authentication, error) {
	c := agent.Authentication{
		Method: r.Method, URL: requestURL(r, a.cfg.MountPrefix), Path: r.URL.Path, Query: r.URL.RawQuery, PathParams: pathParams(pattern, r.URL.Path),
		Headers: [][2]string{{"host", r.Host}},
	}
	for name, values := range r.Header {
		for _, v := range values {
			c.Headers = append(c.Headers, [2]string{strings.ToLower(name), v})
		}
	}
	if !body {
		return c, nil
	}
	raw, err := a.readRaw(w, r)
	if err != nil {
		return c, err
	}
	r.Body = io.NopCloser(bytes.NewReader(raw))
	c.Body = raw
	return c, nil
}

// requestURL is the URL as the client wrote it, as far as the server can know.
func requestURL(r *http.Request, prefix string) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	if forwarded := r.Header.Get("X-Forwarded-Proto"); forwarded == "http" || forwarded == "https" {
		scheme = forwarded
	}
	return scheme + "://" + r.Host + prefix + r.URL.RequestURI()
}

// pathParams are the values of a pattern's wildcards in a path that matches it.
func pathParams(pattern, path string) map[string]string {
	params := map[string]string{}
	_, pattern, _ = strings.Cut(pattern, " ")
	values := strings.Split(path, "/")
	for i, segment := range strings.Split(pattern, "/") {
		name, wild := strings.CutPrefix(strings.TrimSuffix(segment, "}"), "{")
		if !wild || i >= len(values) {
			continue
		}
		if rest, all := strings.CutSuffix(name, "..."); all {
			params[rest] = strings.Join(values[i:], "/")
		} else {
			params[name] = values[i]
		}
	}
	return params
}
