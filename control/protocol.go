package control

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
)

// Bounds of the listener protocol.
const (
	MaxLogBatch    = 1000 // lines in one delivery
	MaxMetricBatch = 1000 // deployments in one delivery
	// ProtocolMajor is the newest major version of listeners that this service understands. Every older one stays served.
	ProtocolMajor = 1
)

// Caller is a listener that calls: the credential it brought, the listener it says to be, and its program's version.
type Caller struct {
	Principal  slipway.Principal
	ListenerID string
	Version    string // "" = not told
}

// ListenerFeed is what one listener elsewhere sees and says (control-plane reference 8). It is a slipway.Feed.
type ListenerFeed struct {
	s *Service
	l slipway.Listener
}

var _ slipway.Feed = (*ListenerFeed)(nil)

// ListenerFeed lets a listener in; the call counts as its heartbeat. Its desired state holds secrets in clear, so only admins
// of its tenant and keys bound to it get here. CodeBadRequest: its version is newer than this service understands.
func (s *Service) ListenerFeed(ctx context.Context, c Caller) (*ListenerFeed, error) {
	if err := authorize(c.Principal, mayListen); err != nil {
		return nil, err
	}
	if bound := c.Principal.ListenerID; bound != "" && bound != c.ListenerID {
		return nil, slipway.Errorf(slipway.CodeNotFound, "Listener ID %s not found.", c.ListenerID)
	}
	if err := understood(c.Version); err != nil {
		return nil, err
	}
	var l slipway.Listener
	err := s.store.View(ctx, func(tx slipway.Tx) (err error) {
		l, err = visibleListener(tx, c.Principal.TenantID, c.ListenerID)
		return err
	})
	if err == nil {
		err = s.heard(ctx, l, c.Version)
	}
	if err != nil {
		return nil, wrap("let listener in", err)
	}
	return &ListenerFeed{s, l}, nil
}

// understood refuses versions of a major that is not known yet; what is no number is as good as the newest.
func understood(version string) error {
	if version == "" {
		return nil
	}
	if !slipway.ListenerVersion(version) {
		var problems slipway.Problems
		problems.Add([]any{"header", "Slipway-Listener-Version"}, "%.100q is no version; use one such as 0.1.0", version)
		return problems.Err()
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	if n, err := strconv.Atoi(major); err == nil && n > ProtocolMajor {
		return slipway.Errorf(slipway.CodeBadRequest,
			"listener version %q is newer than this service understands (up to %d.x); upgrade the service, or use an older listener", version, ProtocolMajor)
	}
	return nil
}

// Desired implements slipway.Feed: the deployments that name this listener.
func (f *ListenerFeed) Desired(ctx context.Context, cursor string) (slipway.DesiredState, error) {
	return f.s.desiredOf(ctx, f.l.ID, cursor)
}

// Poll is Desired that answers an empty partial state after wait, so that a request ends; half the patience bounds it.
func (f *ListenerFeed) Poll(ctx context.Context, cursor string, wait time.Duration) (slipway.DesiredState, error) {
	limited, cancel := context.WithTimeout(ctx, min(wait, f.s.cfg.ListenerPatience/2))
	defer cancel()
	err := f.s.awaitChange(limited, f.l.ID, cursor)
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return slipway.DesiredState{Cursor: cursor, Partial: true}, nil
	case err != nil:
		return slipway.DesiredState{}, err
	}
	return f.s.readDesired(ctx, f.l.ID, cursor)
}

// Report implements slipway.Feed.
func (f *ListenerFeed) Report(ctx context.Context, r slipway.Report) error {
	return f.s.reportOf(ctx, f.l.ID, r)
}

// AppendLogs implements slipway.Feed. Lines of deployments that are not the listener's (any more) are dropped: a delivery that
// is tried until it succeeds must not hang on one that is gone.
func (f *ListenerFeed) AppendLogs(ctx context.Context, entries []slipway.LogEntry) error {
	_, err := f.AcceptLogs(ctx, entries)
	return err
}

// AcceptLogs is AppendLogs that tells how many lines were stored.
func (f *ListenerFeed) AcceptLogs(ctx context.Context, entries []slipway.LogEntry) (stored int, err error) {
	if len(entries) > MaxLogBatch {
		return 0, slipway.Errorf(slipway.CodeTooLarge, "%d lines in one delivery; send at most %d", len(entries), MaxLogBatch)
	}
	mine, err := f.mine(ctx, idsOf(entries, func(e slipway.LogEntry) string { return e.DeploymentID }))
	if err != nil {
		return 0, err
	}
	kept := make([]slipway.LogEntry, 0, len(entries))
	for _, e := range entries {
		if _, ok := mine[e.DeploymentID]; ok {
			kept = append(kept, logLine(e, f.s.clock()))
		}
	}
	if len(kept) == 0 {
		return 0, nil
	}
	return len(kept), f.s.AppendLogs(ctx, kept)
}

// logLine makes a line from elsewhere fit to be kept.
func logLine(e slipway.LogEntry, now time.Time) slipway.LogEntry {
	e.Seq, e.Kind = 0, slipway.LogDeploy
	if e.At.IsZero() || e.At.After(now.Add(time.Hour)) {
		e.At = now
	}
	e.Message = strings.ReplaceAll(strings.ToValidUTF8(e.Message, "\ufffd"), "\x00", "\ufffd")
	if len(e.Message) > slipway.MaxLogLine {
		e.Message = strings.ToValidUTF8(e.Message[:slipway.MaxLogLine-len("…")], "") + "…"
	}
	return e
}

// Measure keeps what the listener last measured of its deployments; those of others are dropped.
func (f *ListenerFeed) Measure(ctx context.Context, all []slipway.Metrics) (stored int, err error) {
	if len(all) > MaxMetricBatch {
		return 0, slipway.Errorf(slipway.CodeTooLarge, "metrics of %d deployments in one delivery; send at most %d", len(all), MaxMetricBatch)
	}
	mine, err := f.mine(ctx, idsOf(all, func(m slipway.Metrics) string { return m.DeploymentID }))
	if err != nil || len(mine) == 0 {
		return 0, err
	}
	err = f.s.store.Update(ctx, func(tx slipway.Tx) error {
		stored = 0
		for _, m := range all {
			if _, ok := mine[m.DeploymentID]; !ok {
				continue
			}
			m.TenantID, m.ReceivedAt = f.l.TenantID, f.s.clock()
			if err := tx.PutMetrics(m); err != nil {
				return err
			}
			stored++
		}
		return nil
	})
	return stored, wrap("store metrics", err)
}

// mine returns those of the deployments that are the listener's.
func (f *ListenerFeed) mine(ctx context.Context, ids []string) (map[string]slipway.Deployment, error) {
	out := map[string]slipway.Deployment{}
	if len(ids) == 0 {
		return out, nil
	}
	err := f.s.store.View(ctx, func(tx slipway.Tx) error {
		found, err := tx.Deployments(slipway.DeploymentQuery{Listener: &f.l.ID, IDs: ids, Statuses: slipway.DeploymentStatuses()})
		for _, d := range found {
			out[d.ID] = d
		}
		return err
	})
	return out, wrap("find the listener's deployments", err)
}

func idsOf[T any](all []T, id func(T) string) []string {
	var out []string
	for _, v := range all {
		out = append(out, id(v))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Metrics returns what was last measured of a deployment of the caller's tenant; ok is false if nothing was yet.
func (s *Service) Metrics(ctx context.Context, who slipway.Principal, deploymentID string) (m slipway.Metrics, ok bool, err error) {
	if err := authorize(who, mayRead); err != nil {
		return m, false, err
	}
	err = s.store.View(ctx, func(tx slipway.Tx) error {
		if _, err := visible(tx, who.TenantID, deploymentID); err != nil {
			return err
		}
		m, err = tx.Metrics(who.TenantID, deploymentID)
		if ok = err == nil; slipway.ErrorCode(err) == slipway.CodeNotFound {
			return nil
		}
		return err
	})
	return m, ok, wrap("get metrics", err)
}
