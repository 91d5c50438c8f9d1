package engine

import (
	"context"

	"github.com/slipway-dev/slipway/agent"
)

// App returns what is known of the application's own HTTP app; nil where there is none. Until a worker has loaded it for the
// first time it is waited for, and CodeUnavailable without one in time: what the app's middleware guards is not opened
// before the app is there. From then on it is known, also while no worker is.
func (e *Engine) App(ctx context.Context) (*agent.PartInfo, error) {
	if p := e.app.Load(); p != nil || !e.hasPart(agent.PartApp) {
		return p, nil
	}
	if _, err := e.partWorker(ctx, agent.PartApp); err != nil {
		return nil, err
	}
	return e.app.Load(), nil
}

// AppExchange begins a request for the application's HTTP app in a worker that has loaded it.
func (e *Engine) AppExchange(ctx context.Context, r agent.HTTPRequest) (agent.Exchange, error) {
	w, err := e.partWorker(ctx, agent.PartApp)
	if err != nil {
		return nil, err
	}
	return w.Exchange(r)
}

// App is Engine.App.
func (g *Guard) App(ctx context.Context) (*agent.PartInfo, error) { return g.e.App(ctx) }

// AppExchange is Engine.AppExchange: whom the application's own routes admit is their affair.
func (g *Guard) AppExchange(ctx context.Context, r agent.HTTPRequest) (agent.Exchange, error) {
	return g.e.AppExchange(ctx, r)
}
