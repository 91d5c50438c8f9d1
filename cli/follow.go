package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/client"
)

const (
	followInterval = 200 * time.Millisecond // between looks at a revision
	followPage     = 1000                   // log lines per look
	lastLines      = 20                     // log lines shown after a failure
)

// follow shows a revision's way to its end, with its build log, and returns an error unless it is DEPLOYED.
func (a *app) follow(ctx context.Context, c *client.Client, d client.Deployment, revisionID string, p *progress) error {
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	logs := &tail{client: c, query: client.LogQuery{DeploymentID: d.ID, RevisionID: revisionID, Build: true, Limit: followPage}}
	status := ""
	for {
		r, err := c.Revision(ctx, d.ID, revisionID)
		if err != nil {
			return err
		}
		if err := logs.more(ctx, p.log); err != nil {
			return err
		}
		if r.Status != status {
			status = r.Status
			p.change(r)
		}
		if r.Ended() {
			return a.ended(ctx, c, d, r, p)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			p.tick()
		}
	}
}

// ended reports the end of a revision: success, or the reason with the last log lines.
func (a *app) ended(ctx context.Context, c *client.Client, d client.Deployment, r client.Revision, p *progress) error {
	if r.Status == "DEPLOYED" {
		if fresh, err := c.Deployment(ctx, d.ID); err == nil {
			d = fresh
		}
		p.result("succeeded", d, r)
		return nil
	}
	reason := r.Reason()
	if reason == "" {
		reason = "no reason was given"
	}
	if r.Status == "BUILD_FAILED" && !p.json || r.Status == "DEPLOY_FAILED" { // a program has read the build log already
		a.lastLines(ctx, c, d, r, p)
	}
	p.result("failed", d, r)
	return fmt.Errorf("%s ended with %s: %s", d.Name, r.Status, reason)
}

// lastLines prints the newest log lines of a failed revision, oldest first. For a person those of a build are repeated,
// so that nobody has to scroll.
func (a *app) lastLines(ctx context.Context, c *client.Client, d client.Deployment, r client.Revision, p *progress) {
	q := client.LogQuery{DeploymentID: d.ID, RevisionID: r.ID, Build: r.Status == "BUILD_FAILED", Descending: true, Limit: lastLines}
	entries, _, err := c.Logs(ctx, q)
	if err != nil || len(entries) == 0 {
		return
	}
	p.line(bad("last log lines:"))
	for i := len(entries) - 1; i >= 0; i-- {
		p.log(entries[i])
	}
}

// tail reads a growing log from where it stopped.
type tail struct {
	client *client.Client
	query  client.LogQuery
	done   bool // the stream has ended
}

// more hands every line that came since the last call to show.
func (t *tail) more(ctx context.Context, show func(client.LogEntry)) error {
	for !t.done {
		entries, next, err := t.client.Logs(ctx, t.query)
		if err != nil {
			return err
		}
		for _, e := range entries {
			show(e)
		}
		t.done = next == ""
		t.query.Offset = next
		if len(entries) < t.query.Limit {
			return nil
		}
	}
	return nil
}
