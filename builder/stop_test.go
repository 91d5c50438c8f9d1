package builder_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/builder"
)

// leased is a queue whose lease goes away when lost is set, and that tells of every log line.
type leased struct {
	*logbook
	lost  atomic.Bool
	lines chan string
}

func (l *leased) Renew(context.Context, slipway.BuildJob) error {
	if l.lost.Load() {
		return slipway.Errorf(slipway.CodeStale, "the lease is gone")
	}
	return nil
}

func (l *leased) Log(ctx context.Context, job slipway.BuildJob, entries []slipway.LogEntry) error {
	for _, e := range entries {
		l.lines <- e.Message
	}
	return l.logbook.Log(ctx, job, entries)
}

// stopped starts a build whose command forks children in several ways, and returns its parts once the children run.
func stopped(t *testing.T, f factory, cfg builder.Config, mark string) (*leased, context.CancelFunc, <-chan error) {
	t.Helper()
	l := &leased{logbook: &logbook{queue: queue{jobs: make(chan slipway.BuildJob, 1), done: make(chan report, 1)}}, lines: make(chan string, 1000)}
	cfg.Root = f.root
	files := with(javascript(""), "fork.sh", "sleep "+mark+" & setsid sleep "+mark+" & (env -i setsid sh -c 'sleep "+mark+" & sleep "+mark+"' &)\n"+
		"until [ $(pgrep -xfc 'sleep "+mark+"') = 4 ]; do :; done; echo forked-all; wait\n")
	b := builder.New(cfg, builder.Deps{
		Queue: l, Clock: time.Now, Log: slog.New(slog.DiscardHandler), Toolchains: f.tool,
		Fetchers: map[slipway.Source]slipway.SourceFetcher{slipway.SourceInternalSource: files},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	l.jobs <- slipway.BuildJob{Source: slipway.SourceInternalSource, InstallCommand: "sh fork.sh"}
	for {
		select {
		case line := <-l.lines:
			if line == "forked-all" {
				return l, cancel, ended
			}
		case r := <-l.done:
			t.Fatalf("the build ended before its command ran: %+v", r)
		}
	}
}

// running counts the processes whose command line has the text.
func running(t *testing.T, text string) int {
	t.Helper()
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	if len(files) == 0 {
		t.Fatal("the system shows no processes in /proc, so what was left running cannot be told")
	}
	n := 0
	for _, file := range files {
		if raw, err := os.ReadFile(file); err == nil && bytes.Contains(raw, []byte(text)) {
			n++
		}
	}
	return n
}

// left lists what builds left behind.
func left(t *testing.T, root string) (names []string) {
	t.Helper()
	for _, dir := range []string{"bundles", "layers"} {
		found, _ := filepath.Glob(filepath.Join(root, dir, ".tmp-*"))
		names = append(names, found...)
	}
	return names
}

func TestStoppingKillsTheBuild(t *testing.T) {
	t.Parallel()
	f := newFactory(t)
	l, cancel, ended := stopped(t, f, builder.Config{}, "86433")
	if running(t, "86433") == 0 {
		t.Error("nothing runs: the test proves nothing")
	}
	cancel()
	<-ended
	if n := running(t, "86433"); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	if names := left(t, f.root); len(names) > 0 || len(l.done) > 0 {
		t.Errorf("left %v, reported %d; want a job without a report, for the next builder", names, len(l.done))
	}
}

func TestALostLeaseKillsTheBuild(t *testing.T) {
	t.Parallel()
	f := newFactory(t)
	l, cancel, ended := stopped(t, f, builder.Config{Renew: 5 * time.Millisecond, Concurrency: 1}, "86444")
	l.lost.Store(true)
	l.jobs <- slipway.BuildJob{Source: slipway.SourceInternalSource, ConfigPath: "none.json"}
	if r := <-l.done; !strings.Contains(r.reason, "none.json") {
		t.Errorf("the lost build was reported: %+v", r)
	}
	if n := running(t, "86444"); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	cancel()
	<-ended
}

func TestATooLongBuildFails(t *testing.T) {
	t.Parallel()
	f := newFactory(t)
	l, cancel, ended := stopped(t, f, builder.Config{Timeout: 4 * time.Second}, "86455")
	r := <-l.done
	if want := "the build took longer than 4s"; !strings.Contains(r.reason, want) {
		t.Errorf("got the reason %q, want %q in it", r.reason, want)
	}
	if n := running(t, "86455"); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	cancel()
	<-ended
}

func TestLeftoversAreRemovedAtStart(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"bundles/.tmp-1/app", "layers/.tmp-2", "tools/.tmp-3"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	build(t, root, javascript("1"))
	if names := left(t, root); len(names) > 0 {
		t.Errorf("left %v", names)
	}
}

func TestSecretsStayOutOfTheLog(t *testing.T) {
	t.Parallel()
	f := newFactory(t)
	const secret, long, key = "hunter2-canary", "hunter2-canary-and-more", "-----BEGIN KEY-----\nAAAABBBBCCCC\n-----END KEY-----"
	script := strings.Join([]string{
		"printf '" + long + "\\n'", "printf 'x" + secret + "y\\n'", "printf '" + strings.ReplaceAll(key, "\n", `\n`) + "\\n'",
		// A secret across the place where a long line is cut.
		"head -c 16380 /dev/zero | tr '\\0' z; echo " + secret,
		"echo 'Error: bad " + secret + "'; exit 1",
	}, "\n")
	m := f.build(with(javascript("1"), "s.sh", script), slipway.BuildJob{InstallCommand: "sh s.sh", Redact: []string{secret, long, key}})
	for _, part := range []string{"hunter2", "canary", "and-more", "AAAABBBBCCCC"} {
		if strings.Contains(m.log, part) || strings.Contains(m.reason, part) {
			t.Errorf("%q is in the log or the reason %q", part, m.reason)
		}
	}
	if !strings.Contains(m.log, "x••••••••y") || !strings.Contains(m.reason, "Error: bad ••••••••") {
		t.Errorf("got the reason %q and the log\n%.2000s", m.reason, m.log)
	}
}

func TestAFullDiskIsSaid(t *testing.T) {
	t.Parallel()
	q := queue{jobs: make(chan slipway.BuildJob, 1), done: make(chan report, 1)}
	b := builder.New(builder.Config{Root: t.TempDir(), MinimumFree: 1 << 62}, builder.Deps{Queue: q, Clock: time.Now, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	q.jobs <- slipway.BuildJob{}
	if r := <-q.done; !strings.Contains(r.reason, "MiB of disk are free") {
		t.Errorf("got the reason %q", r.reason)
	}
	cancel()
	<-ended
}
