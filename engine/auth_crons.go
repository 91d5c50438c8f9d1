package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

func noCron() error { return slipway.Errorf(slipway.CodeNotFound, "Cron not found") }

// cronValue is a cron as handlers see it.
func cronValue(c agent.Cron) map[string]any {
	value := map[string]any{
		"payload": object(c.Payload), "schedule": c.Schedule, "cron_id": c.ID, "thread_id": text(c.ThreadID), "user_id": text(c.UserID),
		"end_time": nil, "metadata": object(c.Metadata),
	}
	if !c.EndTime.IsZero() {
		value["end_time"] = c.EndTime.Format(time.RFC3339Nano)
	}
	return value
}

// stamped is the metadata of a cron after its handler.
func (v verdict) stamped(c agent.Cron) json.RawMessage { return v.over("metadata", c.Metadata) }

// allowCronRun asks whether a user may make what a cron will make for him: the thread and the assistant are checked as they
// will be at each firing, so that a cron that could not fire is refused at once.
func (e *Engine) allowCronRun(ctx context.Context, u *agent.User, c agent.Cron, run RunRequest) (RunRequest, error) {
	run.ThreadID, run.Stateless, run.Keep = c.ThreadID, c.ThreadID == "", c.OnRunCompleted == "keep"
	allowed, err := e.allowRun(ctx, u, run)
	if err != nil || c.ThreadID == "" || allowed.Filter == nil {
		return allowed, err
	}
	t, err := e.Thread(ctx, c.ThreadID)
	if err == nil && !allowed.Filter.Allows(object(t.Metadata)) {
		err = noThread(c.ThreadID)
	}
	return allowed, err
}

// CreateCron is Engine.CreateCron with crons:create and what its runs need; it acts as its creator.
func (g *Guard) CreateCron(ctx context.Context, c agent.Cron, run RunRequest) (agent.Cron, error) {
	u := agent.UserFrom(ctx)
	c.ID = or(c.ID, g.e.ids())
	if u != nil {
		c.UserID = u.Identity
	}
	v, err := g.ask(ctx, "crons", "create", cronValue(c))
	if err != nil {
		return agent.Cron{}, err
	}
	if _, err := g.e.allowCronRun(ctx, u, c, run); err != nil {
		return agent.Cron{}, err
	}
	c.Metadata, run.User = v.stamped(c), u
	return g.e.CreateCron(ctx, c, run)
}

// cron returns a cron that the user may do this to.
func (g *Guard) cron(ctx context.Context, action, id string) (agent.Cron, error) {
	v, err := g.ask(ctx, "crons", action, map[string]any{"cron_id": id})
	if err != nil {
		return agent.Cron{}, err
	}
	c, err := g.e.Cron(ctx, id)
	if err == nil && !v.filter.Allows(object(c.Metadata)) {
		return agent.Cron{}, noCron()
	}
	return c, err
}

// Cron is Engine.Cron with crons:read.
func (g *Guard) Cron(ctx context.Context, id string) (agent.Cron, error) {
	return g.cron(ctx, "read", id)
}

// searchingCrons is crons:search, laid over a query.
func (g *Guard) searchingCrons(ctx context.Context, q agent.CronQuery) (agent.CronQuery, error) {
	v, err := g.ask(ctx, "crons", "search", map[string]any{
		"assistant_id": text(g.e.assistantID(q.AssistantID)), "thread_id": text(q.ThreadID), "metadata": object(q.Metadata), "limit": q.Limit, "offset": q.Offset,
	})
	q.Metadata, q.Filter = v.over("metadata", q.Metadata), v.filter
	return q, err
}

// Crons is Engine.Crons with crons:search.
func (g *Guard) Crons(ctx context.Context, q agent.CronQuery) ([]agent.Cron, error) {
	q, err := g.searchingCrons(ctx, q)
	if err != nil {
		return nil, err
	}
	return g.e.Crons(ctx, q)
}

// CountCrons is Engine.CountCrons with crons:search.
func (g *Guard) CountCrons(ctx context.Context, q agent.CronQuery) (int, error) {
	q, err := g.searchingCrons(ctx, q)
	if err != nil {
		return 0, err
	}
	return g.e.CountCrons(ctx, q)
}

// ChangeCron is Engine.ChangeCron with crons:update; it goes on acting as its creator, who must be allowed to make what it
// makes from now on, and so must be whoever changes it.
func (g *Guard) ChangeCron(ctx context.Context, id string, change func(agent.Cron) (agent.Cron, RunRequest, error)) (agent.Cron, error) {
	if !g.e.guarded() {
		return g.e.ChangeCron(ctx, id, change)
	}
	current, err := g.e.Cron(ctx, id)
	if err != nil {
		current = agent.Cron{ID: id} // handlers are asked before anything is said of it
	}
	value := map[string]any{"cron_id": id}
	wanted, run, wrong := change(current)
	if err == nil && wrong == nil {
		value = cronValue(wanted)
	}
	v, refused := g.ask(ctx, "crons", "update", value)
	switch {
	case refused != nil:
		return agent.Cron{}, refused
	case err != nil:
		return agent.Cron{}, err
	case !v.filter.Allows(object(current.Metadata)):
		return agent.Cron{}, noCron()
	case wrong != nil:
		return agent.Cron{}, wrong
	}
	run.AssistantID = or(run.AssistantID, wanted.AssistantID)
	if _, err := g.e.allowCronRun(ctx, agent.UserFrom(ctx), wanted, run); err != nil {
		return agent.Cron{}, err
	}
	return g.e.ChangeCron(ctx, id, func(c agent.Cron) (agent.Cron, RunRequest, error) {
		if !v.filter.Allows(object(c.Metadata)) {
			return c, RunRequest{}, noCron()
		}
		c, run, err := change(c)
		c.Metadata = v.stamped(c)
		return c, run, err
	})
}

// DeleteCron is Engine.DeleteCron with crons:delete.
func (g *Guard) DeleteCron(ctx context.Context, id string) error {
	if _, err := g.cron(ctx, "delete", id); err != nil {
		return err
	}
	return g.e.DeleteCron(ctx, id)
}
