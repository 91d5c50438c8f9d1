// Command slipway is the whole platform in one binary: `slipway up` runs it, `slipway serve` is one deployment's agent
// server, and the other commands talk to a running platform.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/cli"
	"github.com/slipway-dev/slipway/keeper"
)

// version is set by the linker (Makefile).
var version = "dev"

func main() {
	if keeper.Is(os.Args) {
		os.Exit(keeper.Run())
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	go awaitSignals(cancel)
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "slipway:", cli.Message(err))
		os.Exit(1)
	}
}

// stopped is the cause of a context that a signal ended.
type stopped struct{ signal os.Signal }

// Error names the signal.
func (s stopped) Error() string { return "stopped by signal " + s.signal.String() }

// awaitSignals ends the context on the first signal and the process on the second.
func awaitSignals(cancel context.CancelCauseFunc) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	cancel(stopped{<-signals})
	<-signals
	os.Exit(130)
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
	root.AddCommand(upCommand(), downCommand(), serveCommand(), builderCommand())
	root.AddCommand(collectorCommand(), licenseCommand(), usageCommand())
	cli.Helpful(root)
	return root
}
