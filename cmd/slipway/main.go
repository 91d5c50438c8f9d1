// Command slipway is the whole platform in one binary: `slipway up` runs it, `slipway serve` is one deployment's agent
// server, and the other commands talk to a running platform.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/slipway-dev/slipway/cli"
	"github.com/spf13/cobra"
)

// version is set by the linker (Makefile).
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "slipway:", cli.Message(err))
		os.Exit(1)
	}
}

// command is the tree of all commands.
func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "slipway",
		Short:         "The open deployment platform for agent graphs",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(cli.Commands(root, cli.Environment{Version: version, Getenv: os.Getenv, Out: os.Stdout})...)
	root.AddCommand(upCommand(), downCommand(), serveCommand())
	return root
}
