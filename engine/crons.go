package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// NextDate evaluates a cron schedule: the first date after a moment, zero without one; CodeInvalid for what is no
// schedule or no zone.
type NextDate func(schedule, zone string, after time.Time) (time.Time, error)

const (
	// cronPatience bounds how long the loop sleeps: it notices a changed clock of the machine after that at the latest.
	cronPatience = time.Minute
	// cronBatch is how many due crons are looked up at once.
	cronBatch = 100
)

// CreateCron makes a cron that creates the given run at its dates; Request is filled in here. Thread and assistant must
// exist (reference 6).
func (e *Engine) CreateCron(ctx context.Context, c agent.Cron, run RunRequest) (agent.Cron, error) {
	a, err := e.namedAssistant(ctx, run.AssistantID)
	if err != nil {
		return c, err
	}
	now := e.clock()
	c.ID = or(c.ID, e.ids())
	c.AssistantID, c.Metadata, c.CreatedAt, c.UpdatedAt = a.ID, withoutReserved(object(c.Metadata)), now, now
	if c, err = e.scheduled(c, run); err != nil {
		return c, err
	}
	if err := e.store.CreateCron(ctx, c); err != nil {
		return c, err
	}
	e.cronsChanged()
	return c, nil
}

// scheduled fills in what follows from the schedule and from the run.
func (e *Engine) scheduled(c agent.Cron, run RunRequest) (agent.Cron, error) {
	if err := e.checkWebhook(run.Webhook); err != nil {
		return c, err
	}
	run.ThreadID, run.Stateless, run.Keep = c.ThreadID, c.ThreadID == "", c.OnRunCompleted == "keep"
	request, err := json.Marshal(run)
	if err != nil {
		return c, fmt.Errorf("encode the run of a cron: %w", err)
	}
	c.Request = request
	c.NextRun, err = e.nextDate(c)
	return c, err
}

// nextDate returns the first date of a cron from now on; zero if it is disabled or past its end.
func (e *Engine) nextDate(c agent.Cron) (time.Time, error) {
	next, err := e.cfg.NextDate(c.Schedule, c.Timezone, e.clock())
	if err != nil || !c.Enabled || !c.EndTime.IsZero() && next.After(c.EndTime) {
		return time.Time{}, err
	}
	return next, nil
}

// Cron returns a cron.
func (e *Engine) Cron(ctx context.Context, id string) (agent.Cron, error) {
	return e.store.Cron(ctx, id)
}

// Crons lists crons.
func (e *Engine) Crons(ctx context.Context, q agent.CronQuery) ([]agent.Cron, error) {
	q.AssistantID = e.assistantID(q.AssistantID)
	return e.store.Crons(ctx, q)
}

// CountCrons counts crons.
func (e *Engine) CountCrons(ctx context.Context, q agent.CronQuery) (int, error) {
	q.AssistantID = e.assistantID(q.AssistantID)
	return e.store.CountCrons(ctx, q)
}

// ChangeCron replaces what change makes of a cron and the run it returns with it. change may be called again and has no
// effects.
func (e *Engine) ChangeCron(ctx context.Context, id string, change func(agent.Cron) (agent.Cron, RunRequest, error)) (agent.Cron, error) {
	current, err := e.store.Cron(ctx, id)
	if err != nil {
		return current, err
	}
	wanted, run, err := change(current)
	if err != nil {
		return current, err
	}
	a, err := e.namedAssistant(ctx, or(run.AssistantID, wanted.AssistantID))
	if err != nil {
		return current, err
	}
	changed, err := e.store.ChangeCron(ctx, id, func(c agent.Cron) (agent.Cron, error) {
		c, run, err := change(c)
		if err != nil {
			return c, err
		}
		c.AssistantID, run.AssistantID, c.UpdatedAt = a.ID, a.ID, e.clock()
		run.User = userOf(c.Request)
		c.Metadata = withoutReserved(c.Metadata)
		return e.scheduled(c, run)
	})
	if err == nil {
		e.cronsChanged()
	}
	return changed, err
}

// DeleteCron removes a cron; what it has started goes on.
func (e *Engine) DeleteCron(ctx context.Context, id string) error { return e.store.DeleteCron(ctx, id) }

// cronsChanged makes the loops of all instances look at the dates anew.
func (e *Engine) cronsChanged() {
	e.wakeCrons()
	e.say(topicCrons, note{})
}

func (e *Engine) wakeCrons() { wakeLoop(e.cronKick) }

// fireDue fires what is due and returns how long to sleep.
func (e *Engine) fireDue(ctx context.Context) (time.Duration, error) {
	if !e.canAuthorize() {
		return cronPatience, nil // the worker that can will wake this loop
	}
	for {
		due, err := e.store.DueCrons(ctx, e.clock(), cronBatch)
		if err != nil {
			return 0, err
		}
		var failed []error // one that cannot be fired keeps no other back
		for _, c := range due {
			if err := e.fire(ctx, c); err != nil {
				failed = append(failed, fmt.Errorf("cron %s: %w", c.ID, err))
			}
		}
		if len(failed) > 0 {
			return 0, errors.Join(failed...)
		}
		if len(due) < cronBatch {
			break
		}
	}
	next, err := e.store.NextCron(ctx)
	if err != nil || next.IsZero() {
		return cronPatience, err
	}
	return min(max(next.Sub(e.clock()), 0), cronPatience), nil
}

// fire makes the run of one due date. Dates that were missed count as one (reference 6).
func (e *Engine) fire(ctx context.Context, c agent.Cron) error {
	firing := agent.Firing{CronID: c.ID, Due: c.NextRun}
	var err error
	if firing.Next, err = e.nextDate(c); err != nil {
		return err // it was checked when the cron was made
	}
	var s *seat
	if a, err := e.cronRun(ctx, c); err == nil {
		s = e.reserveFor(&a)
		firing.Run = &a
	} else if slipway.ErrorCode(err) == slipway.CodeNotFound {
		e.log.Warn("a cron has nothing to run", "cron_id", c.ID, "assistant_id", c.AssistantID, "thread_id", c.ThreadID, "error", err)
	} else if refused(err) {
		e.log.Warn("a cron's user may not make its run", "cron_id", c.ID, "assistant_id", c.AssistantID, "thread_id", c.ThreadID, "error", err)
	} else {
		return err
	}
	admitted, fired, err := e.store.Fire(ctx, firing)
	if err != nil || !fired || admitted.Run.ID == "" {
		e.unreserve(s)
		return err
	}
	e.follow(admitted, s)
	return nil
}

func (e *Engine) cronRun(ctx context.Context, c agent.Cron) (agent.Admission, error) {
	var run RunRequest
	if err := json.Unmarshal(c.Request, &run); err != nil {
		return agent.Admission{}, fmt.Errorf("read the run of a cron: %w", err)
	}
	metadata := parse(c.Metadata)
	metadata.set("cron_id", c.ID)
	run.AssistantID, run.Metadata = c.AssistantID, metadata.json()
	run, err := e.allowCronRun(ctx, run.User, c, run)
	if err != nil {
		return agent.Admission{}, err
	}
	return e.admission(ctx, run)
}
