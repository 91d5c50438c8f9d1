package engine

import (
	"context"
	"encoding/json"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// Guard is the engine as clients reach it: every operation asks the application's handlers first whether the user of its
// context may do it, and applies what they say (reference 12). It embeds nothing, so that an operation without a rule here
// cannot be reached. Where the deployment has no Auth object it only passes on.
type Guard struct{ e *Engine }

// Guarded returns the engine as clients reach it.
func (e *Engine) Guarded() *Guard { return &Guard{e} }

// Health tells how the server is; everybody may know.
func (g *Guard) Health(ctx context.Context) Health { return g.e.Health(ctx) }

// Info tells what the server is; everybody may know.
func (g *Guard) Info() Info { return g.e.Info() }

// Metrics measures the server; everybody who is authenticated may know.
func (g *Guard) Metrics(ctx context.Context) (Metrics, error) { return g.e.Metrics(ctx) }

// Authenticate is Engine.Authenticate.
func (g *Guard) Authenticate(ctx context.Context, s Sender) (*agent.User, error) {
	return g.e.Authenticate(ctx, s)
}

// ask is authorize for the user of the context.
func (g *Guard) ask(ctx context.Context, resource, action string, value map[string]any) (verdict, error) {
	return g.e.authorize(ctx, agent.UserFrom(ctx), resource, action, value)
}

// text is a member of a value: null where there is nothing.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// set puts a member into a value where there is something.
func set(value map[string]any, key string, raw json.RawMessage) {
	if !absent(raw) {
		value[key] = raw
	}
}

// name returns a text member of the value if the handler has made it another one.
func (v verdict) name(key, was string) string {
	var now string
	if json.Unmarshal(v.value[key], &now) != nil || now == "" {
		return was
	}
	return now
}

func ifExists(reuse bool) string {
	if reuse {
		return "do_nothing"
	}
	return "raise"
}

// reusable makes something new; where that is there already and may be reused, it returns what find finds if the filter
// allows it. What is hidden is a conflict (reference 12).
func reusable[T any](reuse bool, f *agent.Filter, create func(reuse bool) (T, error), find func() (T, json.RawMessage, error)) (T, error) {
	if f == nil || !reuse {
		return create(reuse)
	}
	made, err := create(false)
	if slipway.ErrorCode(err) != slipway.CodeConflict {
		return made, err
	}
	found, metadata, missing := find()
	if missing == nil && f.Allows(metadata) {
		return found, nil
	}
	var none T
	return none, err
}
