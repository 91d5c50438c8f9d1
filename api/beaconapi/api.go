// Package beaconapi is the collector's HTTP API (spec 4.5; control-plane reference 9): six calls that installations send
// telemetry to, in the specification's shapes and as standard OTLP/HTTP, with one dialect of errors.
package beaconapi

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/problem"
	"github.com/slipway-dev/slipway/intake"
)

// Config holds the settings of the API.
type Config struct {
	Log *slog.Logger
	// TrustedProxies are networks whose X-Forwarded-For header says whom a request is from.
	TrustedProxies []netip.Prefix
	// Enforce applies the sender's rules of severity and redaction (spec 4.5) to what is received, for collectors that must
	// be sure; otherwise telemetry is kept as it is sent.
	Enforce bool
	// PerLicence makes /metrics show usage per licence, for listeners that only the operator reaches.
	PerLicence bool
}

// maxBody bounds a body after decompression, in bytes.
const maxBody = 16 << 20

type api struct {
	svc      *intake.Service
	cfg      Config
	huma     huma.API
	requests *requestCounter
}

// New returns the API as a handler for the root of a server.
func New(svc *intake.Service, cfg Config) http.Handler {
	mux := http.NewServeMux()
	a := &api{svc: svc, cfg: cfg, requests: newRequestCounter()}
	a.huma = humago.New(mux, humaConfig())
	a.huma.UseMiddleware(problem.PlainJSON)
	a.billing()
	a.signals(mux)
	a.service(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		problem.Write(w, slipway.Errorf(slipway.CodeNotFound, "there is no %s %s here; the calls are described at /openapi.json", r.Method, short(r.URL.Path)))
	})
	return a.requests.count(mux, a.door(mux))
}

func short(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}

func humaConfig() huma.Config {
	c := huma.DefaultConfig("slipway collector", "0.1.0")
	c.OpenAPIPath, c.DocsPath, c.SchemasPath, c.CreateHooks = "", "", "", nil
	c.Formats = map[string]huma.Format{"application/json": problem.Format(), "json": problem.Format()}
	c.Transformers = []huma.Transformer{problem.Transform}
	c.AllowAdditionalPropertiesByDefault = true
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"Licence": {Type: "apiKey", In: "header", Name: "X-License-Key", Description: "A licence key, or the token that /v1/beacon/verify gave for one."},
		"Bearer":  {Type: "http", Scheme: "bearer", Description: "The same as a bearer token."},
	}
	return c
}

// door is what every request passes before anything is done for it: the limit of its address, and its body within bounds and
// decompressed.
func (a *api) door(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		err := a.svc.Address(a.sender(r))
		if err == nil {
			err = unpack(w, r)
		}
		if err != nil {
			a.refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// sender is the address a request is from.
func (a *api) sender(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	addr, _ := netip.ParseAddr(host)
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && a.trusted(addr); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		addr = hop
	}
	return addr
}

func (a *api) trusted(addr netip.Addr) bool {
	for _, network := range a.cfg.TrustedProxies {
		if network.Contains(addr.Unmap()) {
			return true
		}
	}
	return false
}

// answer is how an error is answered: status, text, and when to come back.
func (a *api) answer(err error) (*problem.Answer, int) {
	var many *intake.TooMany
	if errors.As(err, &many) {
		return &problem.Answer{Status: http.StatusTooManyRequests, Text: many.Error()}, int(many.After.Seconds())
	}
	answer := problem.From(err)
	switch answer.Status {
	case http.StatusInternalServerError:
		a.cfg.Log.Error("request failed", "error", err)
	case http.StatusServiceUnavailable:
		return answer, 1
	}
	return answer, 0
}

// refuse answers an error outside the framework, in the encoding of the request where that is OTLP's protobuf.
func (a *api) refuse(w http.ResponseWriter, r *http.Request, err error) {
	answer, after := a.answer(err)
	if after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(after))
	}
	if isProtobuf(r) {
		w.Header().Set("Content-Type", protobufType)
		w.WriteHeader(answer.Status)
		_, _ = w.Write(statusMessage(answer)) // the client is gone if this fails
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(answer.Status)
	_ = a.huma.Marshal(w, "application/json", answer) // the client is gone if this fails
}

// problem maps an error to what the framework answers.
func (a *api) problem(err error) error {
	answer, after := a.answer(err)
	if after > 0 {
		return huma.ErrorWithHeaders(answer, http.Header{"Retry-After": {strconv.Itoa(after)}})
	}
	return answer
}

type okOutput struct {
	Body struct {
		OK bool `json:"ok"`
	}
}

// service registers the calls about the collector itself.
func (a *api) service(mux *http.ServeMux) {
	huma.Register(a.huma, huma.Operation{
		OperationID: "ok", Method: http.MethodGet, Path: "/ok", Summary: "Say that the collector and its store answer", Errors: []int{503},
	}, func(ctx context.Context, _ *struct{}) (*okOutput, error) {
		if err := a.svc.Ready(ctx); err != nil {
			a.cfg.Log.Error("the store does not answer", "error", err)
			return nil, a.problem(slipway.Errorf(slipway.CodeUnavailable, "the store does not answer"))
		}
		out := &okOutput{}
		out.Body.OK = true
		return out, nil
	})
	mux.HandleFunc("GET /.well-known/jwks.json", a.jwks)
	mux.Handle("GET /metrics", a.metrics())
	description := describe(a.huma.OpenAPI())
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(description) // the client is gone if this fails
	})
}

// jwks answers the key set that licences and tokens verify with.
func (a *api) jwks(w http.ResponseWriter, r *http.Request) {
	set, err := a.svc.JWKS()
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/jwk-set+json")
	w.Header().Set("Cache-Control", "public, max-age=300")
	_, _ = w.Write(set) // the client is gone if this fails
}
