package client_test

import (
	"context"

	"github.com/slipway-dev/slipway/client"
)

var integrationMethods = map[string]call{
	"list_integrations": func(ctx context.Context, c *client.Client, _ string) error {
		_, _, err := c.Integrations(ctx, 10, 0)
		return err
	},
	"create_integration": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.CreateIntegration(ctx, client.IntegrationCreate{})
		return err
	},
	"delete_integration": func(ctx context.Context, c *client.Client, _ string) error { return c.DeleteIntegration(ctx, id) },
	"create_app_manifest": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.DescribeApp(ctx, client.AppManifestRequest{})
		return err
	},
	"create_app_conversion": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.ConvertApp(ctx, id, "code")
		return err
	},
	"create_githost_installation_link": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.InstallationLink(ctx)
		return err
	},
	"list_githost_integrations": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.GithostIntegrations(ctx)
		return err
	},
	"get_githost_repositories": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.Repositories(ctx, id)
		return err
	},
	"list_githost_installations": func(ctx context.Context, c *client.Client, _ string) error {
		_, _, err := c.Installations(ctx, 10, "cursor")
		return err
	},
	"get_githost_installation_repositories": func(ctx context.Context, c *client.Client, _ string) error {
		_, _, err := c.InstallationRepositories(ctx, id, 10, "cursor")
		return err
	},
}
