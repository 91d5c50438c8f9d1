package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/cli"
	"github.com/slipway-dev/slipway/runtime/process"
	"github.com/spf13/cobra"
)

// downLimit is how long a platform may take to stop itself and its agent servers before it is killed.
const downLimit = 60 * time.Second

func downCommand() *cobra.Command {
	return &cobra.Command{
		Use: "down", Short: "Stop a detached slipway and its agent servers", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := cli.DataDir(cmd.Flag("data-dir").Value.String(), os.Getenv)
			if err != nil {
				return err
			}
			return down(cmd.Context(), installation{dir: dir})
		},
	}
}

// down stops the platform of a data directory and whatever it left running.
func down(ctx context.Context, where installation) error {
	if _, err := os.Stat(where.dir); err != nil {
		return fmt.Errorf("there is no installation in %s; name its directory with --data-dir", where.dir)
	}
	wasUp := where.held()
	if wasUp {
		if err := stopPlatform(where); err != nil {
			return err
		}
	}
	if err := stopWorkloads(ctx, where); err != nil {
		return err
	}
	_ = os.Remove(where.path("running.json"))
	if wasUp {
		fmt.Println("stopped")
	} else {
		fmt.Println("slipway was not running; no agent server is left")
	}
	return nil
}

// stopPlatform asks the platform to stop as Ctrl-C does, and kills it if it does not.
func stopPlatform(where installation) error {
	r, err := where.running()
	if err != nil {
		return fmt.Errorf("slipway runs in %s but has not said as which process; stop it with Ctrl-C where it was started", where.dir)
	}
	_ = syscall.Kill(r.PID, syscall.SIGINT)
	if where.awaitReleased(downLimit) {
		return nil
	}
	_ = syscall.Kill(r.PID, syscall.SIGKILL)
	if !where.awaitReleased(downLimit) {
		return fmt.Errorf("process %d does not end; stop it by hand", r.PID)
	}
	return nil
}

// stopWorkloads ends agent servers that a platform left behind when it was killed or terminated.
func stopWorkloads(ctx context.Context, where installation) error {
	rt, err := openRuntime(where, "", counting{}, nil, nil, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		return err
	}
	defer rt.Close()
	if _, err := rt.Recover(ctx); err != nil {
		return err
	}
	return rt.Stop(ctx)
}

// openRuntime opens the process runtime of a data directory; databaseURL is where agent servers keep their data, "" = in
// the directory.
func openRuntime(where installation, databaseURL string, by counting, sink process.Sink, fetch func(context.Context, string) error, log *slog.Logger) (*process.Runtime, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find the program to start agent servers with: %w", err)
	}
	env, destroy := agentDatabase(databaseURL, by)
	return process.New(process.Config{
		Command: []string{self, "serve"}, Root: where.dir, BundleDir: where.path("bundles"),
		BaseEnv: process.BaseEnv(os.Environ()), ServerEnv: env, Destroy: destroy, Sink: sink, Fetch: fetch,
	}, log)
}
