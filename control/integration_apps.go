package control

import (
	"context"
	"encoding/json"

	"github.com/slipway-dev/slipway"
)

// githubURL is where GitHub Apps are made unless the request names a GitHub Enterprise Server.
const githubURL = "https://github.com"

// AppRequest asks for the manifest of a GitHub App.
type AppRequest struct {
	Name         string // of the integration and, at first, of the app
	HostURL      string // "" = https://github.com
	APIURL       string // "" = the usual one of the host
	Organization string // that shall own the app; "" = whoever makes it
	RedirectURL  string // where GitHub sends the browser with the code
}

// AppManifest describes a GitHub App to GitHub: a browser POSTs Manifest as the form field "manifest" to PostURL.
type AppManifest struct {
	IntegrationID string
	PostURL       string
	Manifest      string // JSON
}

// DescribeApp makes an integration that waits for its GitHub App, and the manifest that GitHub makes the app of.
func (s *Service) DescribeApp(ctx context.Context, who slipway.Principal, in AppRequest) (AppManifest, error) {
	if err := authorize(who, mayDelete); err != nil {
		return AppManifest{}, err
	}
	if in.HostURL == "" {
		in.HostURL = githubURL
	}
	if err := slipway.ValidateApp(in.Name, in.HostURL, in.APIURL, in.Organization, in.RedirectURL, s.cfg.PlainHosts); err != nil {
		return AppManifest{}, err
	}
	now := s.clock()
	i := slipway.Integration{
		ID: s.ids(), TenantID: who.TenantID, Kind: slipway.HostGitHub, Name: in.Name, HostURL: trimmed(in.HostURL), APIURL: trimmed(in.APIURL),
		CreatedBy: who.ID, CreatedAt: now, UpdatedAt: now,
	}
	manifest, err := json.Marshal(s.manifest(i, in.RedirectURL))
	if err != nil {
		return AppManifest{}, err
	}
	err = s.update(ctx, func(tx slipway.Tx) error {
		if err := dropUnfinished(tx, who.TenantID, in.Name); err != nil {
			return err
		}
		if err := tx.PutIntegration(i); err != nil {
			return err
		}
		return s.auditDiff(tx, who, "describe_app", i.ID, map[string]any{"name": i.Name}, nil, integrationView(i))
	})
	if err != nil {
		return AppManifest{}, wrap("describe app", err)
	}
	post := i.HostURL + "/settings/apps/new"
	if in.Organization != "" {
		post = i.HostURL + "/organizations/" + in.Organization + "/settings/apps/new"
	}
	return AppManifest{IntegrationID: i.ID, PostURL: post + "?state=" + i.ID, Manifest: string(manifest)}, nil
}

// dropUnfinished removes an app of the name that was described before and never made.
func dropUnfinished(tx slipway.Tx, tenantID, name string) error {
	apps, err := tx.Integrations(slipway.IntegrationQuery{TenantID: tenantID, Kind: slipway.HostGitHub})
	if err != nil {
		return err
	}
	for _, i := range apps {
		if i.Name == name && !i.Usable() {
			return tx.DeleteIntegration(i.ID)
		}
	}
	return nil
}

// manifest asks for the least that cloning, pushes and commit statuses need. Hosts on the internet cannot reach a loopback
// address, and GitHub refuses a manifest with one.
func (s *Service) manifest(i slipway.Integration, redirect string) map[string]any {
	m := map[string]any{
		"name": i.Name, "url": s.cfg.BaseURL, "redirect_url": redirect, "public": false,
		"default_permissions": map[string]string{"contents": "read", "metadata": "read", "statuses": "write"},
	}
	if !slipway.Loopback(s.cfg.BaseURL) || slipway.Loopback(i.HostURL) {
		m["hook_attributes"] = map[string]any{"url": s.WebhookURL(i.ID), "active": true}
		m["default_events"] = []string{"push"}
	}
	return m
}

// ConvertApp exchanges the code that GitHub sent for the app and keeps its keys sealed. CodeConflict if it has been done.
func (s *Service) ConvertApp(ctx context.Context, who slipway.Principal, id, code string) (slipway.Integration, error) {
	if err := authorize(who, mayDelete); err != nil {
		return slipway.Integration{}, err
	}
	var i slipway.Integration
	err := s.store.View(ctx, func(tx slipway.Tx) (err error) {
		i, err = tx.Integration(who.TenantID, id)
		return err
	})
	switch {
	case err != nil:
		return i, wrap("convert app", integrationNotFound(id, err))
	case i.Usable():
		return i, slipway.Errorf(slipway.CodeConflict, "the integration %q has its app already", i.Name)
	case s.hosts.hosts == nil:
		return i, slipway.Errorf(slipway.CodeBadRequest, "this installation reaches no git hosts")
	}
	app, err := s.hosts.hosts.ConvertManifest(ctx, i, code)
	if err != nil {
		return i, wrap("convert app", err)
	}
	before := i
	i.AppID, i.AppSlug, i.UpdatedAt = app.ID, app.Slug, s.clock()
	return i, wrap("convert app", s.putIntegration(ctx, who, before, &i, app.Secrets))
}

// InstallationLink returns where a browser installs the tenant's newest GitHub App (control-plane reference 2). CodeNotFound
// without one.
func (s *Service) InstallationLink(ctx context.Context, who slipway.Principal) (string, error) {
	if err := authorize(who, mayUpdate); err != nil {
		return "", err
	}
	var apps []slipway.Integration
	err := s.store.View(ctx, func(tx slipway.Tx) (err error) {
		apps, err = tx.Integrations(slipway.IntegrationQuery{TenantID: who.TenantID, Kind: slipway.HostGitHub})
		return err
	})
	if err != nil {
		return "", wrap("find the installation link", err)
	}
	for _, i := range apps {
		if i.Usable() {
			return InstallURL(i), nil
		}
	}
	return "", slipway.Errorf(slipway.CodeNotFound, "there is no GitHub App to install; make one with `slipway integrations github create`")
}

// InstallURL is where a browser installs a GitHub App.
func InstallURL(i slipway.Integration) string {
	if i.HostURL == githubURL {
		return i.HostURL + "/apps/" + i.AppSlug + "/installations/new"
	}
	return i.HostURL + "/github-apps/" + i.AppSlug + "/installations/new" // GitHub Enterprise Server
}
