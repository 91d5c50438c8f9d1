package controltest

import (
	"slices"
	"time"

	"github.com/slipway-dev/slipway"
)

func (t *tx) LogsBeyond(deploymentID string, keep int64) (int64, error) {
	total := int64(0)
	for i := len(t.logs) - 1; i >= 0; i-- {
		if e := t.logs[i]; e.DeploymentID == deploymentID {
			if total += int64(len(e.Message)) + slipway.LogLineCost; total > keep {
				return e.Seq, nil
			}
		}
	}
	return 0, nil
}

func (t *tx) DropLogs(deploymentID string, seq int64) error {
	t.logs = slices.DeleteFunc(t.logs, func(e slipway.LogEntry) bool { return e.DeploymentID == deploymentID && e.Seq <= seq })
	return nil
}

func (t *tx) ExpireLogs(before time.Time, limit int) (oldest time.Time, err error) {
	t.logs = slices.DeleteFunc(t.logs, func(e slipway.LogEntry) bool {
		limit--
		return e.Kind == slipway.LogDeploy && e.At.Before(before) && limit >= 0
	})
	for _, e := range t.logs {
		if e.Kind == slipway.LogDeploy && (oldest.IsZero() || e.At.Before(oldest)) {
			oldest = e.At
		}
	}
	return oldest, nil
}
