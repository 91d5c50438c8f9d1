package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
)

func boundedLogs(t *testing.T, s slipway.Store) {
	var entries []slipway.LogEntry
	for i := range 6 {
		kind := slipway.LogDeploy
		if i == 0 {
			kind = slipway.LogBuild
		}
		entries = append(entries, slipway.LogEntry{DeploymentID: "d", RevisionID: "r", Kind: kind, At: startTime().Add(time.Duration(i) * time.Second), Level: "INFO", Message: fmt.Sprintf("ä%08d run_id=r%d", i, i%2)})
	}
	must(t, s.AppendLogs(context.Background(), append(entries, slipway.LogEntry{DeploymentID: "other", Kind: slipway.LogDeploy, At: startTime()})))
	size := int64(len(entries[0].Message) + slipway.LogLineCost)
	update(t, s, func(tx slipway.Tx) error {
		got, err := tx.Logs(slipway.LogQuery{DeploymentID: "d", Kind: slipway.LogDeploy, RunID: "r1", Contains: "00003", Limit: 9})
		must(t, err)
		equal(t, "of a run, and a text", len(got), 1)
		seq, err := tx.LogsBeyond("d", 6*size)
		must(t, err)
		equal(t, "all fit", seq, int64(0))
		all, err := tx.Logs(slipway.LogQuery{DeploymentID: "d", Kind: slipway.LogDeploy, Limit: 9})
		must(t, err)
		seq, err = tx.LogsBeyond("d", 4*size)
		must(t, err)
		equal(t, "the newest that does not fit", seq, all[0].Seq)
		must(t, tx.DropLogs("d", seq))
		oldest, err := tx.ExpireLogs(startTime().Add(3*time.Second), 9)
		must(t, err)
		equal(t, "oldest", oldest, startTime().Add(3*time.Second))
		all, err = tx.Logs(slipway.LogQuery{DeploymentID: "d", Kind: slipway.LogDeploy, Limit: 9})
		must(t, err)
		equal(t, "left", len(all), 3)
		return nil
	})
}
