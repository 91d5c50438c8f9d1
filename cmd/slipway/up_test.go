package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Words in backquotes would be printed as the type of the flag's value.
func TestUsageTextsAreShownAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if strings.Contains(flag.Usage, "`") {
				t.Errorf("%s --%s: %s", cmd.CommandPath(), flag.Name, flag.Usage)
			}
		})
		for _, child := range cmd.Commands() {
			walk(child)
		}
	}
	walk(command())
}
