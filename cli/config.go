package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-dev/slipway/graphconfig"
	"github.com/spf13/cobra"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Look at graph configurations"}
	cmd.AddCommand(a.configCheckCommand())
	return cmd
}

func (a *app) configCheckCommand() *cobra.Command {
	var commands graphconfig.Commands
	cmd := &cobra.Command{
		Use:   "check [PATH]",
		Short: "Check a graph configuration and explain what a deployment makes of it",
		Long: "Check reads the graph configuration of a directory, or the file itself, and tells what will be installed and how, which\n" +
			"graphs there are, what each key means here and what has no effect. It needs no server. It ends with exit code 1 when a\n" +
			"deployment would be refused.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			path := "."
			if len(args) == 1 {
				path = args[0]
			}
			return a.checkConfig(path, commands)
		},
	}
	cmd.Flags().StringVar(&commands.Install, "install-command", "", "explain it with this install command")
	cmd.Flags().StringVar(&commands.Build, "build-command", "", "explain it with this build command")
	return cmd
}

func (a *app) checkConfig(path string, commands graphconfig.Commands) error {
	dir, name := path, ""
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		dir, name = filepath.Split(path)
	}
	if dir == "" {
		dir = "."
	}
	config, err := findConfig(dir, name)
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	c, found := graphconfig.Read(raw)
	top := commonAncestor(applicationDirs(filepath.Dir(config), c))
	inside, err := filepath.Rel(top, config)
	if err != nil {
		return err
	}
	e := c.Explain(os.DirFS(top), filepath.ToSlash(inside), found, commands)
	if err := a.printExplanation(e); err != nil {
		return err
	}
	if !e.Valid {
		return fmt.Errorf("%s would be refused: %s", filepath.Base(config), count(len(e.Errors), "error"))
	}
	return nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (a *app) printExplanation(e graphconfig.Explanation) error {
	if a.json {
		return a.printJSON(e)
	}
	var all error
	for _, line := range e.Lines() {
		_, err := fmt.Fprintln(a.out, plain(line, "\n    "))
		all = errors.Join(all, err)
	}
	return all
}

// applicationDirs are the absolute directories that an application consists of: the configuration's, those of its local
// dependencies and of its uv workspace.
func applicationDirs(dir string, c graphconfig.Config) []string {
	dirs := []string{dir}
	for _, dep := range c.Local() {
		dirs = append(dirs, filepath.Join(dir, filepath.FromSlash(dep)))
	}
	if root := c.UVRoot(); root != "" {
		dirs = append(dirs, filepath.Join(dir, filepath.FromSlash(root)))
	}
	return dirs
}
