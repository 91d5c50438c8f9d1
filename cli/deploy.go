package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/slipway-dev/slipway/client"
	"github.com/spf13/cobra"
)

// deployFlags are the flags of `slipway deploy`.
type deployFlags struct {
	name, config, envFile    string
	secrets                  []string
	repo, ref                string
	installCommand, buildCmd string
	noWait                   bool
}

func (a *app) deployCommand() *cobra.Command {
	var f deployFlags
	cmd := &cobra.Command{
		Use:   "deploy [DIR]",
		Short: "Deploy a directory or a git repository and follow it until it serves",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			return a.deploy(cmd.Context(), dir, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "name of the deployment (default: the directory's or repository's)")
	flags.StringVar(&f.config, "config", "", "graph configuration file (default: agentgraph.json, else langgraph.json)")
	flags.StringVar(&f.envFile, "env-file", "", "file with KEY=VALUE lines to set as secrets")
	flags.StringArrayVar(&f.secrets, "secret", nil, "KEY=VALUE to set as a secret (repeatable)")
	flags.StringVar(&f.repo, "repo", "", "deploy from this git repository instead of a directory")
	flags.StringVar(&f.ref, "ref", "", "branch, or refs/tags/NAME, of the repository (default: its default branch)")
	flags.StringVar(&f.installCommand, "install-command", "", "JavaScript: replaces the detected install command")
	flags.StringVar(&f.buildCmd, "build-command", "", "JavaScript: replaces the detected build command")
	flags.BoolVar(&f.noWait, "no-wait", false, "do not wait for the revision's end")
	return cmd
}

func (a *app) deploy(ctx context.Context, dir string, f deployFlags) error {
	if f.ref != "" && f.repo == "" {
		return errors.New("--ref goes with --repo: name the repository too")
	}
	given, err := f.givenSecrets()
	if err != nil {
		return err
	}
	c, err := a.connect()
	if err != nil {
		return err
	}
	p := a.progress()
	var d client.Deployment
	if f.repo != "" {
		d, err = a.deployRepository(ctx, c, f, given, p)
	} else {
		d, err = a.deployDirectory(ctx, c, dir, f, given, p)
	}
	if err != nil {
		return err
	}
	return a.outcome(ctx, c, d, f.noWait, p)
}

// givenSecrets reads --env-file and --secret; the latter win.
func (f deployFlags) givenSecrets() ([]client.Secret, error) {
	var fromFile []client.Secret
	if f.envFile != "" {
		raw, err := os.ReadFile(f.envFile)
		if err != nil {
			return nil, fmt.Errorf("cannot read --env-file %s: %w", f.envFile, err)
		}
		if fromFile, err = envLines(string(raw)); err != nil {
			return nil, fmt.Errorf("%s: %w", f.envFile, err)
		}
	}
	fromFlags, err := assignments(f.secrets)
	if err != nil {
		return nil, err
	}
	return overlay(fromFile, fromFlags), nil
}

// deployDirectory packs and uploads a directory and starts a revision from it.
func (a *app) deployDirectory(ctx context.Context, c *client.Client, dir string, f deployFlags, given []client.Secret, p *progress) (client.Deployment, error) {
	config, err := findConfig(dir, f.config)
	if err != nil {
		return client.Deployment{}, err
	}
	archive, err := pack(config, p)
	if err != nil {
		return client.Deployment{}, err
	}
	defer archive.close()
	d, err := a.findOrCreate(ctx, c, client.DeploymentCreate{
		Name: nameFor(f.name, filepath.Base(filepath.Dir(config))), Source: "internal_source",
	}, p)
	if err != nil {
		return client.Deployment{}, err
	}
	uploadURL, objectPath, err := c.UploadURL(ctx, d.ID)
	if err != nil {
		return client.Deployment{}, err
	}
	p.step("uploading %d files (%s)", archive.files, size(archive.size))
	if err := c.Upload(ctx, uploadURL, archive.file, archive.size); err != nil {
		return client.Deployment{}, fmt.Errorf("the upload failed: %w", err)
	}
	source := "internal_source"
	patch := client.DeploymentPatch{
		RevisionSource:       &source,
		SourceRevisionConfig: &client.SourceRevisionConfig{SourceTarballPath: &objectPath, AgentgraphConfigPath: &archive.config},
		Secrets:              patchSecrets(d, given),
	}
	if f.installCommand != "" || f.buildCmd != "" {
		patch.SourceConfig = &client.SourceConfig{InstallCommand: optional(f.installCommand), BuildCommand: optional(f.buildCmd)}
	}
	return c.PatchDeployment(ctx, d.ID, patch)
}

// deployRepository starts a revision from a git repository.
func (a *app) deployRepository(ctx context.Context, c *client.Client, f deployFlags, given []client.Secret, p *progress) (client.Deployment, error) {
	name := nameFor(f.name, strings.TrimSuffix(filepath.Base(strings.TrimRight(f.repo, "/")), ".git"))
	config := f.config
	if config == "" {
		config = "agentgraph.json"
	}
	revision := client.SourceRevisionConfig{RepoRef: optional(f.ref), AgentgraphConfigPath: &config}
	source := client.SourceConfig{RepoURL: &f.repo, InstallCommand: optional(f.installCommand), BuildCommand: optional(f.buildCmd)}
	d, found, err := c.DeploymentByName(ctx, name)
	if err != nil {
		return client.Deployment{}, err
	}
	if found && d.Source != "githost" {
		return client.Deployment{}, fmt.Errorf("%q is deployed from %s, not from a repository; choose another --name", d.Name, d.Source)
	}
	if !found {
		p.step("creating deployment %s", name)
		return c.CreateDeployment(ctx, client.DeploymentCreate{
			Name: name, Source: "githost", SourceConfig: source, SourceRevisionConfig: revision, Secrets: given,
		})
	}
	return c.PatchDeployment(ctx, d.ID, client.DeploymentPatch{
		SourceConfig: &source, SourceRevisionConfig: &revision, Secrets: patchSecrets(d, given),
	})
}

func (a *app) findOrCreate(ctx context.Context, c *client.Client, create client.DeploymentCreate, p *progress) (client.Deployment, error) {
	d, found, err := c.DeploymentByName(ctx, create.Name)
	if err != nil {
		return client.Deployment{}, err
	}
	if found {
		if d.Source != create.Source {
			return client.Deployment{}, fmt.Errorf("%q is deployed from %s, not from a directory; choose another --name", d.Name, d.Source)
		}
		return d, nil
	}
	p.step("creating deployment %s", create.Name)
	return c.CreateDeployment(ctx, create)
}

// patchSecrets lays the given secrets over the stored ones; nil leaves them as they are.
func patchSecrets(d client.Deployment, given []client.Secret) *[]client.Secret {
	if len(given) == 0 {
		return nil
	}
	all := overlay(d.Secrets, given)
	return &all
}

var notInName = regexp.MustCompile(`[^a-z0-9-]+`)

// nameFor returns the given name, else one made from text as stock clients do (control-plane reference 3).
func nameFor(given, text string) string {
	if given != "" {
		return given
	}
	name := strings.Trim(notInName.ReplaceAllString(strings.ToLower(text), "-"), "-")
	if name == "" {
		return "app"
	}
	return name
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
