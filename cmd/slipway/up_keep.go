package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway"
)

// keepSettings say how long `slipway up` keeps what nobody needs at once.
type keepSettings struct {
	deletion        slipway.DeletionTerms
	logRetention    time.Duration
	uploadRetention time.Duration
	logMegabytes    int
	revisions       int
}

// longest bounds the periods: ten years.
const longest = 10 * 366 * 24 * time.Hour

func (k *keepSettings) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.DurationVar(&k.deletion.Grace, "delete-grace", 0, "how long the workloads of a deleted deployment go on (0 to 87840h)")
	flags.DurationVar(&k.deletion.Retention, "delete-retention", 168*time.Hour, "how long a deleted deployment can be restored; its name is reserved until then (0 to 87840h)")
	flags.DurationVar(&k.logRetention, "log-retention", 168*time.Hour, "how long the log lines of running deployments are kept (1m to 87840h)")
	flags.IntVar(&k.revisions, "keep-revisions", 5, "revisions of each deployment, the newest, that stay redeployable whatever happens to their source (1 to 1000)")
	flags.DurationVar(&k.uploadRetention, "upload-retention", 168*time.Hour, "how long an uploaded archive stays that no revision needs, from its upload or its last build on (1m to 87840h)")
	flags.IntVar(&k.logMegabytes, "log-limit", 64, "log lines kept of one deployment, in MiB; the oldest go first (1 to 65536)")
}

// check refuses settings that cannot be meant.
func (k *keepSettings) check() error {
	for _, f := range []struct {
		flag       string
		given, min time.Duration
	}{
		{"--delete-grace", k.deletion.Grace, 0},
		{"--delete-retention", k.deletion.Retention, 0},
		{"--log-retention", k.logRetention, time.Minute},
		{"--upload-retention", k.uploadRetention, time.Minute},
	} {
		if f.given < f.min || f.given > longest {
			return fmt.Errorf("%s is %s; give a time from %s to %s, such as 24h", f.flag, f.given, f.min, longest)
		}
	}
	if k.revisions < 1 || k.revisions > 1000 {
		return fmt.Errorf("--keep-revisions is %d; give a number from 1 to 1000", k.revisions)
	}
	if k.logMegabytes < 1 || k.logMegabytes > 65536 {
		return fmt.Errorf("--log-limit is %d; give a number of MiB from 1 to 65536", k.logMegabytes)
	}
	return nil
}
