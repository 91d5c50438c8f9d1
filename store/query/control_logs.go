package query

import (
	"time"

	"github.com/slipway-dev/slipway"
)

const logsBeyond = `
SELECT seq FROM (
  SELECT seq, sum(octet_length(message) + ?) OVER (ORDER BY seq DESC) AS total FROM logs WHERE deployment_id = ?
) AS sized WHERE total > ? ORDER BY seq DESC LIMIT 1`

// LogsBeyond returns where the newest keep bytes of a deployment's log begin.
func (t *tx) LogsBeyond(deploymentID string, keep int64) (int64, error) {
	seq, _, err := one(t.c, scalar[int64], logsBeyond, slipway.LogLineCost, deploymentID, keep)
	return seq, err
}

// DropLogs removes a deployment's oldest lines.
func (t *tx) DropLogs(deploymentID string, seq int64) error {
	_, err := t.c.Exec(`DELETE FROM logs WHERE deployment_id = ? AND seq <= ?`, deploymentID, seq)
	return err
}

const (
	expireLogs = `
DELETE FROM logs WHERE seq IN (SELECT seq FROM logs WHERE kind = 'deploy' AND at < ? ORDER BY at LIMIT ?)`
	oldestLog = `SELECT at FROM logs WHERE kind = 'deploy' ORDER BY at LIMIT 1`
)

// ExpireLogs removes deploy log lines that are too old.
func (t *tx) ExpireLogs(before time.Time, limit int) (time.Time, error) {
	oldest, ok, err := one(t.c, scalar[int64], oldestLog)
	if err != nil || !ok || oldest >= micros(before) {
		return fromMicros(oldest), err
	}
	if _, err := t.c.Exec(expireLogs, micros(before), limit); err != nil {
		return time.Time{}, err
	}
	oldest, _, err = one(t.c, scalar[int64], oldestLog)
	return fromMicros(oldest), err
}
