package engine

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

const (
	// authPatience bounds how long a handler of the application may think about a request.
	authPatience = 30 * time.Second
	// authTries is how often a question is put again because its worker went.
	authTries = 2
	// notValid is what a client is told whose handler said no more (reference 1).
	notValid = "Could not validate credentials"
)

// AuthConfig is what the graph configuration's `auth` says beside its path (reference 12). Whether there is authentication
// at all follows from Config.Parts: a deployment with an Auth object answers nobody whom it has not accepted.
type AuthConfig struct {
	// CacheKeys are names of headers; requests with the same values of all of them are of the same user for CacheTTL. Empty =
	// every request is asked for.
	CacheKeys []string
	CacheTTL  time.Duration
	CacheSize int // users kept at once; 0 = 1000
	// Studio lets debugging UIs in without the application's authentication.
	Studio Studio
}

// Studio says who is taken for a debugging UI: a request with `x-auth-scheme: langsmith` that also carries Key as its
// x-api-key, or any if Open, as on a developer's own machine. The zero value lets none in.
type Studio struct {
	Key  string
	Open bool
}

func (s Studio) admits(header func(string) []string) bool {
	if !slices.Contains(header("X-Auth-Scheme"), "langsmith") {
		return false
	}
	if s.Open {
		return true
	}
	keys := header("X-Api-Key")
	return s.Key != "" && len(keys) == 1 && subtle.ConstantTimeCompare([]byte(keys[0]), []byte(s.Key)) == 1
}

// Sender is a request whose sender is to be found out.
type Sender struct {
	Header func(name string) []string
	// Describe tells everything of the request, with its body only if asked.
	Describe func(body bool) (agent.Authentication, error)
}

// guarded says whether the application decides who may do what.
func (e *Engine) guarded() bool { return e.hasPart(agent.PartAuth) }

// Authenticate returns the user that a request comes from; nil where nothing is guarded. What the application refuses is an
// *agent.HTTPRefusal or CodeUnauthenticated; while no worker is ready to ask it is CodeUnavailable: never open.
func (e *Engine) Authenticate(ctx context.Context, s Sender) (*agent.User, error) {
	if !e.guarded() || isOwn(ctx) {
		return nil, nil
	}
	if e.cfg.Auth.Studio.admits(s.Header) {
		return agent.StudioUser(), nil
	}
	key, cached := e.users.key(s.Header)
	if cached {
		if u := e.users.get(key, e.clock()); u != nil {
			return u, nil
		}
	}
	u, err := e.askWho(ctx, s)
	if err == nil && cached {
		e.users.put(key, u, e.clock())
	}
	return u, err
}

func (e *Engine) askWho(ctx context.Context, s Sender) (*agent.User, error) {
	var request *agent.Authentication
	var unreadable error // the client's fault, not the application's
	document, err := asking(e, ctx, func(ctx context.Context, w agent.Worker, part *agent.PartInfo) (json.RawMessage, error) {
		if !part.Authenticates {
			return nil, slipway.Errorf(slipway.CodeInternal, "the Auth object has no authenticate handler")
		}
		if request == nil {
			described, err := s.Describe(part.WantsBody())
			if err != nil {
				unreadable = err
				return nil, err
			}
			request = &described
		}
		return agent.Authenticate(ctx, w, *request)
	})
	if unreadable != nil {
		return nil, unreadable
	}
	if err != nil {
		return nil, withDefaults(err)
	}
	u, err := agent.ParseUser(document)
	if err == nil && parse(document).isFalse("is_authenticated") {
		return nil, unauthenticated()
	}
	return u, err
}

func (f fields) isFalse(key string) bool { return string(f[key]) == "false" }

// unauthenticated is the refusal of those whom nobody knows.
func unauthenticated() error {
	return &agent.HTTPRefusal{Status: 401, Detail: notValid, Headers: [][2]string{{"WWW-Authenticate", "Bearer"}}}
}

// withDefaults gives a refusal what the handler left out (reference 1).
func withDefaults(err error) error {
	var refusal *agent.HTTPRefusal
	if !errors.As(err, &refusal) || refusal.Status != 401 {
		return err
	}
	out := *refusal
	if strings.TrimSpace(out.Detail) == "" {
		out.Detail = notValid
	}
	if len(out.Headers) == 0 {
		out.Headers = [][2]string{{"WWW-Authenticate", "Bearer"}}
	}
	return &out
}

// asking puts a question to a worker that has the Auth object. A worker that goes meanwhile is replaced by another one.
func asking[T any](e *Engine, ctx context.Context, question func(context.Context, agent.Worker, *agent.PartInfo) (T, error)) (out T, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, authPatience, errAuthLate)
	defer cancel()
	for range authTries {
		w, none := e.partWorker(ctx, agent.PartAuth)
		if none != nil {
			err = none
			break
		}
		out, err = question(ctx, w, w.Info().Loaded(agent.PartAuth))
		if slipway.ErrorCode(err) != slipway.CodeUnavailable {
			break
		}
	}
	return out, e.authError(ctx, err)
}

var errAuthLate = errors.New("an authentication or authorisation handler did not answer in time")

// authError turns what went wrong inside into what a client may know: nothing of the application's code.
func (e *Engine) authError(ctx context.Context, err error) error {
	var refusal *agent.HTTPRefusal
	switch {
	case err == nil || errors.As(err, &refusal):
		return err
	case errors.Is(context.Cause(ctx), errAuthLate), slipway.ErrorCode(err) == slipway.CodeUnavailable:
		return &slipway.Error{Code: slipway.CodeUnavailable, Message: "authentication is not ready; try again shortly", Err: err}
	case ctx.Err() != nil:
		return err
	}
	return slipway.Errorf(slipway.CodeInternal, "an authentication or authorisation handler failed: %w", err)
}

// verdict is the application's word on an operation: what of it may be seen and changed, and its value as the handler left
// it; value is nil where no handler was asked.
type verdict struct {
	filter *agent.Filter
	value  fields
}

// authorize asks the application whether a user may do something (reference 12). "No" is CodeForbidden.
func (e *Engine) authorize(ctx context.Context, u *agent.User, resource, action string, value map[string]any) (verdict, error) {
	if !e.guarded() || isOwn(ctx) {
		return verdict{}, nil
	}
	if u == nil {
		return verdict{}, unauthenticated()
	}
	said, err := asking(e, ctx, func(ctx context.Context, w agent.Worker, part *agent.PartInfo) (agent.Verdict, error) {
		if !handled(part.Handlers, resource, action) {
			return agent.Verdict{Allow: true}, nil
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return agent.Verdict{}, err
		}
		return agent.Authorize(ctx, w, agent.Authorization{User: u.Document, Resource: resource, Action: action, Value: raw})
	})
	if err != nil {
		return verdict{}, err
	}
	if !said.Allow {
		return verdict{}, slipway.Errorf(slipway.CodeForbidden, "Not authorized")
	}
	v := verdict{value: parse(said.Value)}
	v.filter, err = agent.ParseFilter(said.Filter)
	return v, err
}

// handled says whether one of an Auth object's handlers answers for an action, the most general included.
func handled(handlers []string, resource, action string) bool {
	for _, event := range []string{resource + ":" + action, resource, "*:" + action, "*"} {
		if slices.Contains(handlers, event) || slices.Contains(handlers, event+":*") {
			return true
		}
	}
	return false
}

// authActions are the resources and actions that handlers can answer for (reference 12).
func authActions() map[string][]string {
	usual := []string{"create", "read", "update", "delete", "search"}
	return map[string][]string{
		"assistants": usual, "threads": append(slices.Clone(usual), "create_run"), "crons": usual,
		"store": {"put", "get", "search", "list_namespaces", "delete"},
	}
}

// noteAuth tells the log once what no handler answers for: everybody who is authenticated may do it.
func (e *Engine) noteAuth(info agent.WorkerInfo) {
	part := info.Loaded(agent.PartAuth)
	if part == nil {
		return
	}
	e.wakeCrons()
	e.authNoted.Do(func() {
		if !part.Authenticates {
			e.log.Error("the Auth object has no authenticate handler; every request will be refused")
		}
		if open := uncovered(part.Handlers); len(open) > 0 {
			e.log.Warn("no authorisation handler covers some operations, which every authenticated user may do; "+
				"add a handler for them, or one for everything that returns False", "operations", open)
		}
	})
}

// canAuthorize says whether the application could be asked now.
func (e *Engine) canAuthorize() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.guarded() || e.pickPart(agent.PartAuth) != nil
}

// refused says whether the application has decided, or its handler failed: asking again would not help.
func refused(err error) bool {
	var refusal *agent.HTTPRefusal
	var e *slipway.Error
	return errors.As(err, &refusal) || errors.As(err, &e) && (e.Code == slipway.CodeForbidden || e.Code == slipway.CodeInternal)
}

func uncovered(handlers []string) []string {
	var open []string
	for resource, actions := range authActions() {
		for _, action := range actions {
			if !handled(handlers, resource, action) {
				open = append(open, resource+":"+action)
			}
		}
	}
	slices.Sort(open)
	return open
}

// identified sets who a graph works for in a configurable (reference 4.2, 12); nobody else can have set it.
func identified(configurable fields, u *agent.User) fields {
	for _, key := range []string{"langgraph_auth_user", "langgraph_auth_user_id", "langgraph_auth_permissions"} {
		delete(configurable, key)
	}
	if u == nil {
		return configurable
	}
	configurable["langgraph_auth_user"] = u.Document
	configurable.set("langgraph_auth_user_id", u.Identity)
	configurable["langgraph_auth_permissions"] = u.Permissions
	if absent(configurable["user_id"]) {
		configurable.set("user_id", u.Identity)
	}
	return configurable
}

// over returns a member of the value if the handler has changed it, else what it was. What only went through a language
// with less precise numbers has not changed.
func (v verdict) over(key string, was json.RawMessage) json.RawMessage {
	now, there := v.value[key]
	if !there || absent(now) && absent(was) || sameJSON(object(was), now) { // what is absent was shown as {}
		return was
	}
	return now
}
