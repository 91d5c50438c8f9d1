package cli

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"github.com/slipway-dev/slipway/client"
	"github.com/spf13/cobra"
)

func (a *app) redeployCommand() *cobra.Command {
	var noWait bool
	cmd := &cobra.Command{
		Use: "redeploy NAME [REVISION]", Short: "Run the blueprint of a revision again (default: the latest)", Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, d, revision, err := a.revision(cmd.Context(), args)
			if err != nil {
				return err
			}
			if d, err = c.Redeploy(cmd.Context(), d.ID, revision); err != nil {
				return err
			}
			return a.outcome(cmd.Context(), c, d, noWait, a.progress())
		},
	}
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "do not wait for the revision's end")
	return cmd
}

func (a *app) secretsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "secrets", Short: "Set, unset and list the secrets of a deployment"}
	cmd.AddCommand(a.secretsSetCommand(), a.secretsUnsetCommand(), a.secretsListCommand())
	return cmd
}

func (a *app) secretsSetCommand() *cobra.Command {
	var noWait bool
	cmd := &cobra.Command{
		Use: "set NAME KEY=VALUE...", Short: "Set secrets; makes a revision", Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			given, err := assignments(args[1:])
			if err != nil {
				return err
			}
			return a.changeSecrets(cmd.Context(), args[0], noWait, func(stored []client.Secret) ([]client.Secret, error) {
				return overlay(stored, given), nil
			})
		},
	}
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "do not wait for the revision's end")
	return cmd
}

func (a *app) secretsUnsetCommand() *cobra.Command {
	var noWait bool
	cmd := &cobra.Command{
		Use: "unset NAME KEY...", Short: "Remove secrets; makes a revision", Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeSecrets(cmd.Context(), args[0], noWait, func(stored []client.Secret) ([]client.Secret, error) {
				return without(stored, args[1:])
			})
		},
	}
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "do not wait for the revision's end")
	return cmd
}

func (a *app) secretsListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list NAME", Short: "List the names of the secrets", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, d, err := a.named(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			names := make([]string, 0, len(d.Secrets))
			for _, s := range d.Secrets {
				names = append(names, s.Name)
			}
			if a.json {
				return a.printJSON(names)
			}
			for _, name := range names {
				fmt.Fprintln(a.out, name)
			}
			return nil
		},
	}
}

// changeSecrets sends the whole new set; values that are not known here go back masked and stay as they are.
func (a *app) changeSecrets(ctx context.Context, name string, noWait bool, change func([]client.Secret) ([]client.Secret, error)) error {
	c, d, err := a.named(ctx, name)
	if err != nil {
		return err
	}
	secrets, err := change(d.Secrets)
	if err != nil {
		return err
	}
	if d, err = c.PatchDeployment(ctx, d.ID, client.DeploymentPatch{Secrets: &secrets}); err != nil {
		return err
	}
	if d.LatestRevisionID == nil && a.json {
		return a.printJSON(map[string]any{"event": "result", "status": "stored", "deployment_id": d.ID, "name": d.Name})
	}
	if d.LatestRevisionID == nil {
		_, err = fmt.Fprintf(a.out, "stored; the first revision of %s will have them\n", d.Name)
		return err
	}
	return a.outcome(ctx, c, d, noWait, a.progress())
}

// assignments reads KEY=VALUE words.
func assignments(words []string) ([]client.Secret, error) {
	secrets := make([]client.Secret, 0, len(words))
	for _, word := range words {
		name, val, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("a secret is given as KEY=VALUE, not as %q", name)
		}
		secrets = append(secrets, client.Secret{Name: name, Value: val})
	}
	return secrets, nil
}

// overlay returns stored with given laid over it, by name, sorted.
func overlay(stored, given []client.Secret) []client.Secret {
	byName := map[string]string{}
	for _, s := range append(append([]client.Secret{}, stored...), given...) {
		byName[s.Name] = s.Value
	}
	merged := make([]client.Secret, 0, len(byName))
	for name, val := range byName {
		merged = append(merged, client.Secret{Name: name, Value: val})
	}
	sort.Slice(merged, func(i, j int) bool { return merged[i].Name < merged[j].Name })
	return merged
}

func without(stored []client.Secret, names []string) ([]client.Secret, error) {
	gone := map[string]bool{}
	for _, name := range names {
		gone[name] = true
	}
	left := []client.Secret{}
	for _, s := range stored {
		if !gone[s.Name] {
			left = append(left, s)
		}
		delete(gone, s.Name)
	}
	for _, name := range names {
		if gone[name] {
			return nil, fmt.Errorf("there is no secret named %q; `slipway secrets list` shows those there are", name)
		}
	}
	return left, nil
}

// outcome shows what a change led to: with noWait the revision's id, else its way to the end.
func (a *app) outcome(ctx context.Context, c *client.Client, d client.Deployment, noWait bool, p *progress) error {
	if d.LatestRevisionID == nil {
		return fmt.Errorf("%q has no revision; make the first one with `slipway deploy`", d.Name)
	}
	if noWait {
		return p.accepted(d)
	}
	return a.follow(ctx, c, d, *d.LatestRevisionID, p)
}
