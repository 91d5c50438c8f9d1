package controlapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/problem"
)

// Health says that the service answers.
type Health struct {
	OK bool `json:"ok" required:"true" doc:"true"`
}

type okOutput struct{ Body Health }

// Info says what the service is.
type Info struct {
	Product string `json:"product" required:"true" doc:"slipway"`
	Version string `json:"version" required:"true" doc:"version of slipway"`
}

type infoOutput struct{ Body Info }

// service registers the calls about the service itself. The description is rendered once, when everything is registered.
func (a *api) service(mux *http.ServeMux) {
	open := func(id, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: http.MethodGet, Path: path, Summary: summary}
	}
	huma.Register(a.huma, open("ok", "/ok", "Say that the service answers"), a.ok)
	huma.Register(a.huma, open("info", "/info", "Say what the service is"), a.info)
	description := describe(a.huma.OpenAPI())
	page := DocsPage(description)
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		send(w, "application/json", description)
	})
	mux.HandleFunc("GET /docs", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		send(w, "text/html; charset=utf-8", page)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if allowed := allowedMethods(mux, r); len(allowed) > 0 {
			refuseMethod(w, r, allowed)
			return
		}
		problem.Write(w, slipway.Errorf(slipway.CodeNotFound, "there is no %s %s here; /docs lists what there is", r.Method, r.URL.Path))
	})
}

// allowedMethods lists the methods that the path of the request has.
func allowedMethods(mux *http.ServeMux, r *http.Request) []string {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); strings.HasPrefix(pattern, method+" ") {
			allowed = append(allowed, method)
		}
	}
	return allowed
}

func refuseMethod(w http.ResponseWriter, r *http.Request, allowed []string) {
	list := strings.Join(allowed, ", ")
	w.Header().Set("Allow", list)
	problem.Write(w, &problem.Answer{
		Status: http.StatusMethodNotAllowed, Text: "there is no " + r.Method + " " + r.URL.Path + ", only " + list + "; /docs lists what there is",
	})
}

func send(w http.ResponseWriter, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(body) // the client is gone if this fails
}

func (a *api) ok(context.Context, *struct{}) (*okOutput, error) {
	out := &okOutput{}
	out.Body.OK = true
	return out, nil
}

func (a *api) info(context.Context, *struct{}) (*infoOutput, error) {
	out := &infoOutput{}
	out.Body.Product, out.Body.Version = "slipway", a.cfg.Version
	return out, nil
}
