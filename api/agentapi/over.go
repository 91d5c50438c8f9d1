package agentapi

import (
	"context"

	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
)

// Over makes the API's Engine of an engine, guarded by the application's handlers where it has some.
func Over(e *engine.Engine) Engine { return real{e.Guarded()} }

// real turns the engine's concrete streams and waiters into the API's.
type real struct{ *engine.Guard }

func (e real) StreamRun(ctx context.Context, r engine.RunRequest) (agent.Run, Stream, error) {
	run, s, err := e.Guard.StreamRun(ctx, r)
	if err != nil {
		return run, nil, err
	}
	return run, s, nil
}

func (e real) WaitRun(ctx context.Context, r engine.RunRequest) (agent.Run, Waiter, error) {
	run, w, err := e.Guard.WaitRun(ctx, r)
	if err != nil {
		return run, nil, err
	}
	return run, w, nil
}

func (e real) JoinStream(ctx context.Context, threadID, runID string, from engine.From) (Stream, error) {
	s, err := e.Guard.JoinStream(ctx, threadID, runID, from)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (e real) FollowThread(ctx context.Context, threadID, lastEventID string) (Stream, error) {
	s, err := e.Guard.FollowThread(ctx, threadID, lastEventID)
	if err != nil {
		return nil, err
	}
	return s, nil
}
