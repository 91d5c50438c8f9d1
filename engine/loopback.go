package engine

import (
	"context"

	"github.com/slipway-dev/slipway/agent"
)

// Loopback answers requests that user code makes of its own server (reference 13). ctx ends when nobody waits for the answer
// any more.
type Loopback func(ctx context.Context, x agent.Exchange)

var _ agent.RequestHandler = (*Engine)(nil)

// AnswerLoopback says who answers the requests of user code; those that came before wait for it. It is called once.
func (e *Engine) AnswerLoopback(answer Loopback) {
	e.loopback = answer
	close(e.loopbackReady)
}

// WorkerRequest answers one request of user code.
func (e *Engine) WorkerRequest(_ agent.Worker, x agent.Exchange) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-x.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	select {
	case <-e.loopbackReady:
		e.loopback(e.onBehalf(ctx, x.Request()), x)
	case <-ctx.Done():
	}
}

// onBehalf puts into a context for whom user code makes a request: the user of its run; outside of runs the application
// itself, which may do everything. An inner request is its outer one's affair: it is admitted as that is, or by its headers.
func (e *Engine) onBehalf(ctx context.Context, q agent.HTTPRequest) context.Context {
	switch {
	case q.Inner:
		return ctx
	case q.RunID == "":
		return context.WithValue(ctx, ownKey{}, true)
	}
	if u := e.userOfRun(q.RunID); u != nil {
		return agent.WithUser(ctx, u)
	}
	return ctx
}

// ownKey marks what the application itself asks for.
type ownKey struct{}

func isOwn(ctx context.Context) bool {
	own, _ := ctx.Value(ownKey{}).(bool)
	return own
}

// userOfRun is the user that a run executed here works for; nil if there is none.
func (e *Engine) userOfRun(runID string) *agent.User {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.tracks[runID]
	if t == nil || t.exec == nil {
		return nil
	}
	document := parse(parse(t.exec.run.Kwargs.Config)["configurable"])["langgraph_auth_user"]
	if absent(document) {
		return nil
	}
	u, err := agent.ParseUser(document)
	if err != nil {
		return nil
	}
	return u
}
