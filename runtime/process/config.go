package process

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
)

// Sink takes log lines of workloads; it is called again with the same lines until it returns nil or an error with
// CodeNotFound, which drops them. It must not keep the slice.
type Sink func(ctx context.Context, entries []slipway.LogEntry) error

// Config are the settings of a Runtime. Zero values of the durations and bounds mean the defaults named.
type Config struct {
	// Command starts an agent server, e.g. {"/usr/bin/slipway", "serve"}; the flags --bundle, --data, --listen and
	// --ready-file are appended. The program's path must be absolute.
	Command []string
	// Root is the data directory; run/ and deployments/ below it belong to the runtime.
	Root string
	// BundleDir holds the unpacked bundles (slipway.BundlePath).
	BundleDir string
	// Fetch brings an artifact that is not in BundleDir; CodeNotFound: it is nowhere. nil = what is not there cannot be had.
	Fetch func(ctx context.Context, digest string) error
	// BaseEnv is the environment below the blueprint's; see BaseEnv.
	BaseEnv map[string]string
	// ServerEnv is what the agent server of a deployment needs for itself, over everything else; it does not hand it on to
	// user code. nil = nothing.
	ServerEnv func(deploymentID string) map[string]string
	// Destroy removes what a deployment has outside of Root; it is idempotent. nil = nothing.
	Destroy func(ctx context.Context, deploymentID string) error
	// Sink takes the log lines; nil = they are only kept for Observed.LastLines.
	Sink Sink

	StartTimeout   time.Duration // an attempt not ready after this is killed; 15 min
	LiveInterval   time.Duration // between health checks of a ready workload; 15 s
	ProbeTimeout   time.Duration // of one health check; 5 s
	LiveFailures   int           // health checks that fail in a row before a ready workload is killed; 6
	StableAfter    time.Duration // ready for so long, Restarts starts from 0 again; 60 s
	DrainMargin    time.Duration // added to the workload's own grace period; 15 s
	FlushTimeout   time.Duration // for the last log lines of a removed workload; 2 s
	MaxLogBacklog  int64         // bytes of log not yet taken by the sink; older ones are dropped with a mark; 64 MiB
	PunchLogBehind int64         // bytes of log already taken that are kept on disk at most; 4 MiB
}

func (c Config) withDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.StartTimeout, 15*time.Minute)
	def(&c.LiveInterval, 15*time.Second)
	def(&c.ProbeTimeout, 5*time.Second)
	def(&c.StableAfter, time.Minute)
	def(&c.DrainMargin, 15*time.Second)
	def(&c.FlushTimeout, 2*time.Second)
	if c.LiveFailures == 0 {
		c.LiveFailures = 6
	}
	if c.MaxLogBacklog == 0 {
		c.MaxLogBacklog = 64 << 20
	}
	if c.PunchLogBehind == 0 {
		c.PunchLogBehind = 4 << 20
	}
	return c
}

// BaseEnv picks from environ ("K=V") what a workload may see of the platform's own environment: PATH, HOME, LANG, LC_ALL,
// TZ, TMPDIR and USER. Nothing else of it ever reaches a workload (spec 2.5; quality P8).
func BaseEnv(environ []string) map[string]string {
	base := map[string]string{}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		switch name {
		case "PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER":
			base[name] = value
		}
	}
	return base
}

// environment of a workload: the blueprint's over the platform's own, over both what is the agent server's alone.
func (c Config) environment(wl slipway.Workload) []string {
	all := maps.Clone(c.BaseEnv)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, wl.Env)
	if c.ServerEnv != nil {
		maps.Copy(all, c.ServerEnv(wl.DeploymentID))
	}
	env := make([]string, 0, len(all))
	for k, v := range all {
		env = append(env, k+"="+v)
	}
	return env
}
