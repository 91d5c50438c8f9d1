package slipway

import "time"

// LogRecords bound what is kept of logs; it is part of Tx.
type LogRecords interface {
	// LogsBeyond returns the Seq of the newest line of the deployment that is not among its newest keep bytes; 0 = all are.
	LogsBeyond(deploymentID string, keep int64) (seq int64, err error)
	// DropLogs removes the lines of the deployment up to and with seq.
	DropLogs(deploymentID string, seq int64) error
	// ExpireLogs removes at most limit deploy log lines from before the given time and returns when the oldest of the others
	// is from; zero without any.
	ExpireLogs(before time.Time, limit int) (oldest time.Time, err error)
}

// LogLineCost is what a log line counts for beside its message, in bytes.
const LogLineCost = 100
