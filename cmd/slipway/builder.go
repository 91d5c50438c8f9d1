package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/builder"
	"github.com/slipway-dev/slipway/cli"
	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/control"
	"github.com/slipway-dev/slipway/keeper"
	"github.com/slipway-dev/slipway/shelf"
	"github.com/slipway-dev/slipway/source/git"
	"github.com/slipway-dev/slipway/source/tarball"
	"github.com/slipway-dev/slipway/source/template"
	"github.com/slipway-dev/slipway/templates"
	"github.com/slipway-dev/slipway/toolchain/node"
	"github.com/slipway-dev/slipway/toolchain/python"
)

// buildSettings say how builds run on a machine, and what of its disk they may have.
type buildSettings struct {
	builds        int
	timeout       time.Duration
	buildMegs     int
	diskGigabytes int
}

func (b *buildSettings) flags(cmd *cobra.Command, least string) {
	flags := cmd.Flags()
	flags.IntVar(&b.builds, "builds", 2, "builds at the same time ("+least+" to 64)")
	flags.DurationVar(&b.timeout, "build-timeout", 15*time.Minute, "how long one build may take (10s to 24h)")
	flags.IntVar(&b.buildMegs, "build-disk", 8192, "disk that one build may write, in MiB (16 to 1048576)")
	flags.IntVar(&b.diskGigabytes, "disk-limit", 0, "disk that bundles, layers, tools, caches and uploads may take together, in GiB; what is not needed goes, the longest unused first (0 = no bound, to 65536)")
}

// check refuses settings that cannot be meant.
func (b *buildSettings) check(least int) error {
	if b.builds < least || b.builds > 64 {
		return fmt.Errorf("--builds is %d; give a number from %d to 64", b.builds, least)
	}
	if b.timeout < 10*time.Second || b.timeout > 24*time.Hour {
		return fmt.Errorf("--build-timeout is %s; give a time from 10s to 24h, such as 15m", b.timeout)
	}
	if b.buildMegs < 16 || b.buildMegs > 1<<20 {
		return fmt.Errorf("--build-disk is %d; give a number of MiB from 16 to 1048576", b.buildMegs)
	}
	if b.diskGigabytes < 0 || b.diskGigabytes > 65536 {
		return fmt.Errorf("--disk-limit is %d; give a number of GiB from 0 to 65536", b.diskGigabytes)
	}
	return nil
}

func (b *buildSettings) config(root string) builder.Config {
	return builder.Config{Root: root, Owner: newID(), Concurrency: b.builds, Timeout: b.timeout, MaxBytes: int64(b.buildMegs) << 20}
}

// tools lays what installs and bundles on this machine into a builder's dependencies.
func tools(root string, d builder.Deps) builder.Deps {
	javascript := node.New(node.Config{Root: root, Keep: keeper.Self})
	d.UI = javascript
	d.Toolchains = map[slipway.Language]slipway.Toolchain{slipway.Node: javascript, slipway.Python: python.New(python.Config{Root: root, Keep: keeper.Self})}
	return d
}

// openBuilder puts together the builder of this machine.
func openBuilder(where installation, s upSettings, queue slipway.BuildQueue, blobs slipway.Blob, log *slog.Logger) *builder.Builder {
	cfg := s.build.config(where.dir)
	cfg.Owner = control.LocalBuilder + cfg.Owner
	return builder.New(cfg, s.failAt.deps(tools(where.dir, builder.Deps{
		Queue: queue,
		Fetchers: map[slipway.Source]slipway.SourceFetcher{
			slipway.SourceGithost:          git.New(git.Config{FileRoots: s.allowFileRepos, PlainHosts: s.allowHTTPGit}),
			slipway.SourceInternalSource:   tarball.New(blobs, tarball.Limits{}),
			slipway.SourceInternalTemplate: template.New(templates.FS),
		},
		Clock: now,
		Log:   log,
	})))
}

// builderSettings are the settings of `slipway builder`.
type builderSettings struct {
	url, key, keyFile string
	build             buildSettings
	allowFileRepos    []string
	allowHTTPGit      []string
	failAt            failpoint
}

const apiKeyEnv = "SLIPWAY_API_KEY"

func builderCommand() *cobra.Command {
	var s builderSettings
	cmd := &cobra.Command{
		Use: "builder", Short: "Build for a control service elsewhere", Args: cobra.NoArgs,
		Long: "Build revisions for the control service at --url, on this machine, until it is told to stop. Any number of builders may\n" +
			"work for one control service; if one dies, another takes its builds over. The key should be one of role builder:\n" +
			"an organisation-wide one builds for every tenant, one of a tenant for that tenant. Each builder has a data\n" +
			"directory of its own. `slipway up --builds 0` leaves all builds to them.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := cli.DataDir(cmd.Flag("data-dir").Value.String(), os.Getenv)
			if err != nil {
				return err
			}
			if s.failAt, err = readFailpoint(os.Getenv); err != nil {
				return err
			}
			if err := s.check(os.Getenv); err != nil {
				return err
			}
			return runBuilder(cmd.Context(), installation{dir: dir}, s)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.url, "url", "", "address of the control service")
	flags.StringVar(&s.key, "api-key", "", "API key of role builder; also "+apiKeyEnv)
	flags.StringVar(&s.keyFile, "api-key-file", "", "file that holds the API key, so that no process list shows it")
	flags.StringArrayVar(&s.allowFileRepos, "allow-file-repos", nil, "allow file:// git repositories below this directory (repeatable)")
	flags.StringArrayVar(&s.allowHTTPGit, "allow-http-git", nil, "allow the git host HOST:PORT to be spoken to without TLS (repeatable)")
	s.build.flags(cmd, "1")
	return cmd
}

func (s *builderSettings) check(getenv func(string) string) error {
	u, err := url.Parse(s.url)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("--url %q is no address; give that of the control service, such as https://slipway.example.com", s.url)
	}
	if s.key == "" && s.keyFile != "" {
		raw, err := os.ReadFile(s.keyFile)
		if err != nil {
			return fmt.Errorf("cannot read the API key: %w; correct --api-key-file", err)
		}
		s.key = strings.TrimSpace(string(raw))
	}
	if s.key = firstOf(s.key, getenv(apiKeyEnv)); s.key == "" {
		return errors.New("no API key; give one of role builder with --api-key-file, --api-key or " + apiKeyEnv)
	}
	return s.build.check(1)
}

// runBuilder builds until ctx ends.
func runBuilder(ctx context.Context, where installation, s builderSettings) error {
	if err := where.prepare(); err != nil {
		return err
	}
	lock, err := where.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	things, err := shelf.Open(where.dir)
	if err != nil {
		return err
	}
	line := &builderLine{client: client.New(s.url, s.key), shelf: things, failAt: s.failAt, sources: map[string]string{}}
	var b *builder.Builder
	b = builder.New(s.build.config(where.dir), s.failAt.deps(tools(where.dir, builder.Deps{
		Queue: line, Depot: line,
		Fetchers: map[slipway.Source]slipway.SourceFetcher{
			slipway.SourceGithost:          git.New(git.Config{FileRoots: s.allowFileRepos, PlainHosts: s.allowHTTPGit}),
			slipway.SourceInternalSource:   line,
			slipway.SourceInternalTemplate: template.New(templates.FS),
		},
		Tidied: func(ctx context.Context) {
			if err := tidy(ctx, things, b.Busy, int64(s.build.diskGigabytes)<<30); err != nil && ctx.Err() == nil {
				log.Warn("not collected", "error", err.Error())
			}
		},
		Clock: now, Log: log,
	})))
	log.Info("building", "url", s.url, "builds", s.build.builds)
	if err := b.Run(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// tidy keeps a builder's disk within its limit. Nothing there is needed but by the builds that run: artifacts are with the
// control service.
func tidy(ctx context.Context, things *shelf.Shelf, busy func() time.Time, limit int64) error {
	if limit == 0 {
		return nil
	}
	since := time.Now()
	if at := busy(); !at.IsZero() {
		since = at
	}
	items, err := things.List(ctx)
	if err != nil {
		return err
	}
	held := slipway.Holdings{Known: map[string]bool{}}
	for _, item := range items {
		held.Known[item.Path] = true
	}
	for _, item := range slipway.Collect(items, held, slipway.CollectionTerms{Limit: limit, Since: since}).Removals {
		if _, err := things.Remove(ctx, item.Path, since.Add(-time.Nanosecond)); err != nil {
			return err
		}
	}
	return nil
}
