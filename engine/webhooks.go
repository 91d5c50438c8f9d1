package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

const (
	noticeLease   = time.Minute      // how long who has taken a notice may take to deliver it
	noticeBatch   = 32               // notices taken at once
	noticesAtOnce = 8                // deliveries at the same time
	noticeFirst   = 5 * time.Second  // the pause after the first failure; it doubles
	noticeMost    = 30 * time.Minute // up to this
	noticeGiveUp  = 24 * time.Hour   // since the run's end
)

// checkWebhook refuses an address that no webhook may have here.
func (e *Engine) checkWebhook(address string) error {
	policy := e.cfg.WebhookPolicy
	policy.Disabled = policy.Disabled || e.cfg.Webhooks == nil
	return policy.check(address)
}

// deliverDue calls the webhooks of ended runs that are due and returns how long to sleep. What is under way when ctx ends is
// called again later: at least once.
func (e *Engine) deliverDue(ctx context.Context) (time.Duration, error) {
	for {
		now := e.clock()
		list, err := e.store.TakeNotices(ctx, now, now.Add(noticeLease), noticeBatch)
		if err != nil {
			return 0, err
		}
		group, groupCtx := errgroup.WithContext(ctx)
		group.SetLimit(noticesAtOnce)
		for _, n := range list {
			group.Go(func() error { return e.deliver(groupCtx, n) })
		}
		if err := group.Wait(); err != nil {
			return 0, err
		}
		if len(list) < noticeBatch {
			break
		}
	}
	next, err := e.store.NextNotice(ctx)
	if err != nil || next.IsZero() {
		return noticeLease, err
	}
	return min(max(next.Sub(e.clock()), 0), noticeLease), nil
}

// deliver makes one attempt. Only what may go better another time is tried again (reference 4.4).
func (e *Engine) deliver(ctx context.Context, n agent.Notice) error {
	if e.cfg.Webhooks == nil {
		return e.store.DropNotice(ctx, n.ID)
	}
	body, err := e.noticeBody(n)
	if err != nil {
		return err
	}
	header := map[string]string{"Content-Type": "application/json"}
	for name, value := range e.cfg.WebhookPolicy.Headers {
		header[name] = value
	}
	answer, err := e.cfg.Webhooks.Send(ctx, slipway.WebhookRequest{URL: e.address(n.URL), Header: header, Body: body})
	switch {
	case ctx.Err() != nil:
		return nil // its lease ends by itself
	case err == nil && answer.Status >= 200 && answer.Status < 300:
		return e.store.DropNotice(ctx, n.ID)
	case err == nil && answer.Status < 500 && answer.Status != 408 && answer.Status != 429:
		e.log.Warn("a webhook refused the end of a run", "run_id", n.Run.ID, "status", answer.Status)
		return e.store.DropNotice(ctx, n.ID)
	}
	now := e.clock()
	if now.Sub(n.CreatedAt) > noticeGiveUp {
		e.log.Warn("a webhook was given up", "run_id", n.Run.ID, "attempts", n.Attempts, "status", answer.Status, "error", err)
		return e.store.DropNotice(ctx, n.ID)
	}
	pause := min(noticeFirst<<min(n.Attempts-1, 16), noticeMost)
	return e.store.PutOffNotice(ctx, n.ID, now.Add(max(pause, answer.RetryAfter)))
}

// address makes a relative one lead to this server.
func (e *Engine) address(url string) string {
	if len(url) > 0 && url[0] == '/' {
		return e.cfg.SelfURL + url
	}
	return url
}

// noticeBody is the run as clients see it, with what a receiver needs beside it.
func (e *Engine) noticeBody(n agent.Notice) (json.RawMessage, error) {
	body := parse(e.cfg.ShowRun(n.Run))
	for name, at := range map[string]time.Time{
		"run_started_at": n.Run.StartedAt, "run_ended_at": n.Run.EndedAt, "webhook_sent_at": e.clock(),
	} {
		body[name] = json.RawMessage("null")
		if !at.IsZero() {
			body.set(name, at.UTC().Format("2006-01-02T15:04:05.000000-07:00"))
		}
	}
	body["values"], body["error"] = null(n.Values), json.RawMessage("null")
	if n.Run.Failure != nil {
		failure, err := json.Marshal(n.Run.Failure)
		if err != nil {
			return nil, fmt.Errorf("encode the failure of run %s: %w", n.Run.ID, err)
		}
		body["error"] = failure
	}
	if allowed := e.cfg.WebhookPolicy.Payload; len(allowed) > 0 {
		for name := range body {
			if !slices.Contains(allowed, name) {
				delete(body, name)
			}
		}
	}
	return body.json(), nil
}

// noticeWritten wakes the loop when a run with a webhook has ended.
func (e *Engine) noticeWritten(r agent.Run) {
	if r.Kwargs.Webhook != "" {
		wakeLoop(e.noticeKick)
	}
}
