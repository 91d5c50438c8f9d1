// Package controlapi is the control service's HTTP API (spec 4.1, 4.2; control-plane reference 2): decoding, shapes and
// errors; every rule is in the ground and every use case in package control.
package controlapi

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/slipway-dev/slipway/api/authn"
	"github.com/slipway-dev/slipway/api/problem"
	"github.com/slipway-dev/slipway/beacon"
	"github.com/slipway-dev/slipway/control"
)

// Config holds the settings of the API.
type Config struct {
	// BaseURL is the address clients reach the API at, without a trailing slash; deployments are below it at /d/NAME.
	BaseURL string
	// Version of slipway, shown by /info.
	Version string
	Log     *slog.Logger
	// Authn says which proxies are trusted; the zero value trusts none.
	Authn authn.Config
	// Telemetry tells what the installation sends; nil = it sends nothing.
	Telemetry beacon.SenderReport
	// BodyTime is how long a body of JSON may take to come; 0 = 30 s.
	BodyTime time.Duration
}

// maxBody bounds a JSON body in bytes; archives go to signed URLs instead.
const maxBody = 25 << 20

type api struct {
	svc  *control.Service
	cfg  Config
	huma huma.API
}

// New returns the API as a handler for the root of a server.
func New(svc *control.Service, cfg Config) http.Handler {
	mux := http.NewServeMux()
	if cfg.BodyTime == 0 {
		cfg.BodyTime = bodyTime
	}
	a := &api{svc: svc, cfg: cfg}
	a.huma = humago.New(mux, humaConfig())
	a.huma.UseMiddleware(problem.PlainJSON, a.timely, a.authenticate, a.idempotent, a.bodied)
	a.deployments()
	a.deletions()
	a.tiers()
	a.revisions()
	a.logs()
	a.uploads(mux)
	a.builders(mux)
	a.collections()
	a.images()
	a.templates()
	a.projects()
	a.integrations()
	a.webhooks(mux)
	a.listeners()
	a.protocol()
	a.tenants()
	a.keys()
	a.audit()
	a.eventWebhooks()
	a.telemetry()
	a.service(mux)
	return mux
}

// The security schemes of control-plane reference 1; OpenAPI allows no space in such a name.
const (
	apiKeyScheme = "API-Key"
	tenantScheme = "Tenant-ID"
	bearerScheme = "Bearer-Auth"
)

func humaConfig() huma.Config {
	c := huma.DefaultConfig("slipway control service", "0.1.0")
	c.OpenAPIPath, c.DocsPath, c.SchemasPath, c.CreateHooks = "", "", "", nil
	c.Formats = map[string]huma.Format{"application/json": problem.Format(), "json": problem.Format()}
	c.Transformers = []huma.Transformer{problem.Transform}
	c.AllowAdditionalPropertiesByDefault = true
	c.FieldsOptionalByDefault = true
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		apiKeyScheme: {Type: "apiKey", In: "header", Name: "X-Api-Key", Description: "API Key: a key of one tenant or of the organisation"},
		tenantScheme: {Type: "apiKey", In: "header", Name: "X-Tenant-Id", Description: "Tenant ID: selects the tenant of an organisation-wide credential"},
		bearerScheme: {Type: "http", Scheme: "bearer", Description: "Bearer Auth: a JWT or an opaque token"},
	}
	return c
}

func (a *api) refuse(ctx huma.Context, err error) {
	answer := a.problem(err)
	ctx.SetHeader("Content-Type", "application/json")
	ctx.SetStatus(answer.Status)
	_ = a.huma.Marshal(ctx.BodyWriter(), "application/json", answer) // the client is gone if this fails
}

// problem maps an error to its answer and logs what is nobody's fault but ours.
func (a *api) problem(err error) *problem.Answer {
	answer := problem.From(err)
	if answer.Status == http.StatusInternalServerError {
		a.cfg.Log.Error("request failed", "error", err)
	}
	return answer
}

// operation describes a call; each of the three schemes is an alternative (spec 5.1).
func operation(id, method, path, summary string, codes ...int) huma.Operation {
	return keyed(huma.Operation{
		OperationID: id, Method: method, Path: path, Summary: summary, MaxBodyBytes: maxBody,
		Errors:   append([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity}, codes...),
		Security: []map[string][]string{{apiKeyScheme: {}}, {tenantScheme: {}}, {bearerScheme: {}}},
	})
}

func created(op huma.Operation) huma.Operation {
	op.DefaultStatus = http.StatusCreated
	return op
}
