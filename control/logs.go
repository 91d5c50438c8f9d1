package control

import (
	"context"
	"strconv"

	"github.com/slipway-dev/slipway"
)

// LogPage is a page of log lines and where the next one begins.
type LogPage struct {
	Entries []slipway.LogEntry
	// Next is the offset of the next page; nil = there is none and never will be. A follower that reads in ascending order
	// gets one even behind a short page as long as the stream may grow (control-plane reference 2).
	Next *string
}

// Logs reads lines of a deployment of the caller's tenant; q.After is set from offset, the Next of an earlier page.
func (s *Service) Logs(ctx context.Context, who slipway.Principal, q slipway.LogQuery, offset string) (LogPage, error) {
	if err := authorize(who, mayRead); err != nil {
		return LogPage{}, err
	}
	if err := setOffset(&q, offset); err != nil {
		return LogPage{}, err
	}
	var page LogPage
	err := s.store.View(ctx, func(tx slipway.Tx) error {
		grows, err := logGrows(tx, who.TenantID, q)
		if err != nil {
			return err
		}
		if page.Entries, err = tx.Logs(q); err != nil {
			return err
		}
		page.Next = nextOffset(q, page.Entries, grows)
		return nil
	})
	return page, wrap("read logs", err)
}

func setOffset(q *slipway.LogQuery, offset string) error {
	if offset == "" {
		return nil
	}
	after, err := strconv.ParseInt(offset, 10, 64)
	if err != nil || after < 0 {
		var problems slipway.Problems
		problems.Add([]any{"query", "offset"}, "offset %q is none of ours; send the next_offset of an earlier answer, or none", offset)
		return problems.Err()
	}
	q.After = after
	return nil
}

// logGrows says whether more lines may come: a build's until it is over, a deployment's forever.
func logGrows(tx slipway.Tx, tenantID string, q slipway.LogQuery) (bool, error) {
	if q.RevisionID == "" {
		_, err := visible(tx, tenantID, q.DeploymentID)
		return true, err
	}
	r, err := visibleRevision(tx, tenantID, q.DeploymentID, q.RevisionID)
	if err != nil {
		return false, err
	}
	if q.Kind == slipway.LogDeploy {
		return !r.Status.Terminal() || r.Status == slipway.Deployed, nil
	}
	switch r.Status {
	case slipway.Creating, slipway.Queued, slipway.AwaitingBuild, slipway.Building:
		return true, nil
	}
	return false, nil
}

func nextOffset(q slipway.LogQuery, entries []slipway.LogEntry, grows bool) *string {
	full := len(entries) == q.Limit && q.Limit > 0
	if !full && (q.Descending || !grows) {
		return nil
	}
	next := strconv.FormatInt(q.After, 10)
	if len(entries) > 0 {
		next = strconv.FormatInt(entries[len(entries)-1].Seq, 10)
	}
	return &next
}
