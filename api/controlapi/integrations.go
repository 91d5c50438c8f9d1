package controlapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/authn"
	"github.com/slipway-dev/slipway/control"
)

const (
	integrationsV1 = "/v1/integrations/githost"
	integrationsV2 = "/v2/integrations/githost"
	// integrationsPath is slipway's own, for what the specification leaves out: making and removing integrations.
	integrationsPath = "/v2/integrations"
	// maxUnpaged bounds the lists that have no pages.
	maxUnpaged = 1000
	pageLimit  = 100
)

// GithostIntegration is an integration as clients choose one (control-plane reference 3).
type GithostIntegration struct {
	ID             string `json:"id" required:"true" format:"uuid" doc:"use as source_config.integration_id"`
	InstallationID int64  `json:"installation_id" required:"true" doc:"where a GitHub App is installed; 0 with other hosts, and until GitHub told"`
	Name           string `json:"name" required:"true" doc:"unique in the tenant"`
}

// GithostRepository is a repository that may be deployed (spec 2.6; control-plane reference 3).
type GithostRepository struct {
	HostIntegrationID string `json:"host_integration_id" required:"true" format:"uuid" doc:"use as source_config.integration_id"`
	ID                int64  `json:"id" required:"true" doc:"the host's own id of it; 0 where the host has none"`
	Name              string `json:"name" required:"true" doc:"its name without the owner's"`
	Owner             string `json:"owner" required:"true" doc:"its account, organization or group"`
	URL               string `json:"url" required:"true" doc:"use as source_config.repo_url"`
	DefaultBranch     string `json:"default_branch" required:"true" doc:"use as source_revision_config.repo_ref"`
}

// GithostIntegrationsPage is one page of integrations.
type GithostIntegrationsPage struct {
	Items      []GithostIntegration `json:"items" required:"true" nullable:"false" doc:"what is on this page"`
	NextCursor *string              `json:"next_cursor" required:"true" doc:"cursor of the next page; null after the last"`
}

// GithostRepositoriesPage is one page of repositories.
type GithostRepositoriesPage struct {
	Items      []GithostRepository `json:"items" required:"true" nullable:"false" doc:"what is on this page"`
	NextCursor *string             `json:"next_cursor" required:"true" doc:"cursor of the next page; null after the last"`
}

// InstallationLink says where to install the tenant's GitHub App.
type InstallationLink struct {
	InstallURL    string  `json:"install_url" required:"true" doc:"where a browser installs the app"`
	OAuthReuseURL *string `json:"oauth_reuse_url" doc:"null: slipway asks nobody for their own account"`
}

// Integration is an integration in full, without its credentials.
type Integration struct {
	GithostIntegration
	Kind       string    `json:"kind" required:"true" enum:"github,gitea,gitlab,generic" doc:"what program the host runs"`
	HostURL    string    `json:"host_url" required:"true" doc:"address of the host"`
	Pending    bool      `json:"pending" required:"true" doc:"its GitHub App was described, but not made yet"`
	WebhookURL string    `json:"webhook_url" required:"true" doc:"where the host's pushes go"`
	CreatedBy  string    `json:"created_by" required:"true" doc:"who made it"`
	CreatedAt  time.Time `json:"created_at" required:"true" doc:"when it was made"`
}

// IntegrationsList is one page of integrations; offset is that of the next page.
type IntegrationsList struct {
	Resources []Integration `json:"resources" required:"true" nullable:"false" doc:"the integrations of this page, newest first"`
	Offset    int           `json:"offset" required:"true" doc:"the offset of the next page"`
}

// IntegrationCreateRequest makes an integration with a host whose credentials are at hand.
type IntegrationCreateRequest struct {
	Kind          string `json:"kind" required:"true" doc:"gitea (also Forgejo), gitlab or generic; GitHub Apps are made with app-manifest"`
	Name          string `json:"name" required:"true" doc:"unique in the tenant"`
	HostURL       string `json:"host_url" required:"true" doc:"address of the host; of generic ones the beginning of its repositories' addresses"`
	APIURL        string `json:"api_url" doc:"address of the host's API, if it is not at its usual place"`
	Username      string `json:"username" doc:"that goes with the token, if the host wants one"`
	Token         string `json:"token" doc:"access token that may read repositories and write commit statuses"`
	PrivateKey    string `json:"private_key" doc:"deploy key, for kind generic over ssh"`
	KnownHosts    string `json:"known_hosts" doc:"the host's keys, with private_key"`
	WebhookSecret string `json:"webhook_secret" doc:"at least 16 characters; made if left out"`
}

// NewIntegration is an integration that was just made.
type NewIntegration struct {
	Integration
	WebhookSecret string `json:"webhook_secret" required:"true" doc:"to enter at the host; it is shown this once"`
}

// AppManifestRequest asks for the manifest of a GitHub App.
type AppManifestRequest struct {
	Name         string `json:"name" required:"true" doc:"of the integration, and of the app at first"`
	HostURL      string `json:"host_url" doc:"of a GitHub Enterprise Server; https://github.com if left out"`
	APIURL       string `json:"api_url" doc:"address of its API, if it is not at its usual place"`
	Organization string `json:"organization" doc:"that shall own the app; whoever makes it if left out"`
	RedirectURL  string `json:"redirect_url" required:"true" doc:"where GitHub sends the browser with the code"`
}

// AppManifest is what a browser POSTs to GitHub: manifest as the form field of that name, to post_url.
type AppManifest struct {
	IntegrationID string `json:"integration_id" required:"true" format:"uuid" doc:"the integration that waits for its app"`
	PostURL       string `json:"post_url" required:"true" doc:"where the browser sends the form"`
	Manifest      string `json:"manifest" required:"true" doc:"JSON"`
}

// AppConversionRequest brings the code that GitHub gave for the manifest.
type AppConversionRequest struct {
	IntegrationID string `json:"integration_id" required:"true" format:"uuid" doc:"the integration that waits for its app"`
	Code          string `json:"code" required:"true" minLength:"1" maxLength:"200" doc:"the parameter code of the redirection"`
}

// IntegrationPath is the path parameter of calls about one integration.
type IntegrationPath struct {
	IntegrationID string `path:"integration_id" format:"uuid" doc:"id of the integration"`
}

// CursorPage are the query parameters of lists that go on with a cursor.
type CursorPage struct {
	PageSize int    `query:"page_size" minimum:"1" maximum:"100" default:"20" doc:"how many, at most"`
	Cursor   string `query:"cursor" maxLength:"100" doc:"next_cursor of the page before"`
}

type repositoriesInput struct {
	IntegrationPath
	CursorPage
}

func (a *api) integrations() {
	huma.Register(a.huma, operation("list_githost_integrations", http.MethodGet, integrationsV1+"/install", "List integrations, all at once"), a.listInstall)
	huma.Register(a.huma, operation("get_githost_repositories", http.MethodGet, integrationsV1+"/{integration_id}/repos", "List an integration's repositories, all at once", 400, 404, 409, 503), a.allRepositories)
	huma.Register(a.huma, operation("list_githost_installations", http.MethodGet, integrationsV2+"/installations", "List integrations"), a.listInstallations)
	huma.Register(a.huma, operation("get_githost_installation_repositories", http.MethodGet, integrationsV2+"/installations/{integration_id}/repositories", "List an integration's repositories", 400, 404, 409, 503), a.listRepositories)
	huma.Register(a.huma, operation("create_githost_installation_link", http.MethodPost, integrationsV2+"/installation-link", "Ask where to install the GitHub App", 404), a.installationLink)
	huma.Register(a.huma, created(operation("create_app_manifest", http.MethodPost, integrationsV2+"/app-manifest", "Describe a GitHub App", 409)), a.appManifest)
	huma.Register(a.huma, created(operation("create_app_conversion", http.MethodPost, integrationsV2+"/app-conversion", "Take over the GitHub App that was made", 400, 404, 409, 503)), a.appConversion)
	huma.Register(a.huma, operation("list_integrations", http.MethodGet, integrationsPath, "List integrations in full"), a.listIntegrations)
	huma.Register(a.huma, created(operation("create_integration", http.MethodPost, integrationsPath, "Make an integration", 409)), a.createIntegration)
	remove := operation("delete_integration", http.MethodDelete, integrationsPath+"/{integration_id}", "Remove an integration", 404, 409)
	remove.DefaultStatus = http.StatusNoContent
	huma.Register(a.huma, remove, a.deleteIntegration)
}

func (a *api) listInstall(ctx context.Context, _ *struct{}) (*struct{ Body []GithostIntegration }, error) {
	found, err := a.svc.Integrations(ctx, authn.Principal(ctx), slipway.IntegrationQuery{Limit: maxUnpaged})
	if err != nil {
		return nil, a.problem(err)
	}
	return &struct{ Body []GithostIntegration }{installations(found)}, nil
}

func (a *api) listInstallations(ctx context.Context, in *CursorPage) (*struct{ Body GithostIntegrationsPage }, error) {
	if in.Cursor != "" && !slipway.IsUUID(in.Cursor) {
		return nil, a.problem(badCursor())
	}
	found, err := a.svc.Integrations(ctx, authn.Principal(ctx), slipway.IntegrationQuery{Before: in.Cursor, Limit: in.PageSize + 1})
	if err != nil {
		return nil, a.problem(err)
	}
	page := GithostIntegrationsPage{}
	if len(found) > in.PageSize {
		found = found[:in.PageSize]
		page.NextCursor = orNull(found[len(found)-1].ID)
	}
	page.Items = installations(found)
	return &struct{ Body GithostIntegrationsPage }{page}, nil
}

func badCursor() error {
	var problems slipway.Problems
	problems.Add([]any{"query", "cursor"}, "the cursor is none that this list gave; leave it out to begin again")
	return problems.Err()
}

// installations are the integrations that deployments can name.
func installations(found []slipway.Integration) []GithostIntegration {
	out := []GithostIntegration{}
	for _, i := range found {
		if i.Usable() {
			out = append(out, installation(i))
		}
	}
	return out
}

func installation(i slipway.Integration) GithostIntegration {
	return GithostIntegration{ID: i.ID, InstallationID: i.InstallationID, Name: i.Name}
}

func (a *api) listRepositories(ctx context.Context, in *repositoriesInput) (*struct{ Body GithostRepositoriesPage }, error) {
	found, next, err := a.svc.Repositories(ctx, authn.Principal(ctx), in.IntegrationID, in.Cursor, in.PageSize)
	if err != nil {
		return nil, a.problem(err)
	}
	page := GithostRepositoriesPage{Items: repositories(in.IntegrationID, found), NextCursor: orNull(next)}
	return &struct{ Body GithostRepositoriesPage }{page}, nil
}

func (a *api) allRepositories(ctx context.Context, in *IntegrationPath) (*struct{ Body []GithostRepository }, error) {
	all := []GithostRepository{}
	for cursor := ""; ; {
		page, next, err := a.svc.Repositories(ctx, authn.Principal(ctx), in.IntegrationID, cursor, pageLimit)
		if err != nil {
			return nil, a.problem(err)
		}
		all = append(all, repositories(in.IntegrationID, page)...)
		if cursor = next; next == "" || len(all) >= maxUnpaged {
			return &struct{ Body []GithostRepository }{all[:min(len(all), maxUnpaged)]}, nil
		}
	}
}

func repositories(integrationID string, found []slipway.Repository) []GithostRepository {
	out := make([]GithostRepository, len(found))
	for k, r := range found {
		out[k] = GithostRepository{HostIntegrationID: integrationID, ID: r.ID, Name: r.Name, Owner: r.Owner, URL: r.URL, DefaultBranch: r.DefaultBranch}
	}
	return out
}

func (a *api) installationLink(ctx context.Context, _ *struct{}) (*struct{ Body InstallationLink }, error) {
	link, err := a.svc.InstallationLink(ctx, authn.Principal(ctx))
	if err != nil {
		return nil, a.problem(err)
	}
	return &struct{ Body InstallationLink }{InstallationLink{InstallURL: link}}, nil
}

func (a *api) appManifest(ctx context.Context, in *struct{ Body AppManifestRequest }) (*struct{ Body AppManifest }, error) {
	b := in.Body
	m, err := a.svc.DescribeApp(ctx, authn.Principal(ctx), control.AppRequest{
		Name: b.Name, HostURL: b.HostURL, APIURL: b.APIURL, Organization: b.Organization, RedirectURL: b.RedirectURL,
	})
	if err != nil {
		return nil, a.problem(err)
	}
	return &struct{ Body AppManifest }{AppManifest{IntegrationID: m.IntegrationID, PostURL: m.PostURL, Manifest: m.Manifest}}, nil
}

func (a *api) appConversion(ctx context.Context, in *struct{ Body AppConversionRequest }) (*struct{ Body Integration }, error) {
	i, err := a.svc.ConvertApp(ctx, authn.Principal(ctx), in.Body.IntegrationID, in.Body.Code)
	if err != nil {
		return nil, a.problem(err)
	}
	return &struct{ Body Integration }{a.integration(i)}, nil
}

func (a *api) listIntegrations(ctx context.Context, in *struct{ Page }) (*struct{ Body IntegrationsList }, error) {
	found, err := a.svc.Integrations(ctx, authn.Principal(ctx), slipway.IntegrationQuery{Limit: in.Limit, Offset: in.Offset})
	if err != nil {
		return nil, a.problem(err)
	}
	list := IntegrationsList{Resources: []Integration{}, Offset: in.Offset + len(found)}
	for _, i := range found {
		list.Resources = append(list.Resources, a.integration(i))
	}
	return &struct{ Body IntegrationsList }{list}, nil
}

func (a *api) createIntegration(ctx context.Context, in *struct{ Body IntegrationCreateRequest }) (*struct{ Body NewIntegration }, error) {
	b := in.Body
	i, err := a.svc.CreateIntegration(ctx, authn.Principal(ctx), slipway.IntegrationCreate{
		Kind: slipway.HostKind(b.Kind), Name: b.Name, HostURL: b.HostURL, APIURL: b.APIURL,
		Secrets: slipway.IntegrationSecrets{
			Username: b.Username, Token: b.Token, PrivateKey: b.PrivateKey, KnownHosts: b.KnownHosts, WebhookSecret: b.WebhookSecret,
		},
	})
	if err != nil {
		return nil, a.problem(err)
	}
	return &struct{ Body NewIntegration }{NewIntegration{a.integration(i.Integration), i.WebhookSecret}}, nil
}

func (a *api) deleteIntegration(ctx context.Context, in *IntegrationPath) (*struct{}, error) {
	if err := a.svc.DeleteIntegration(ctx, authn.Principal(ctx), in.IntegrationID); err != nil {
		return nil, a.problem(err)
	}
	return nil, nil
}

func (a *api) integration(i slipway.Integration) Integration {
	return Integration{
		GithostIntegration: installation(i), Kind: string(i.Kind), HostURL: i.HostURL, Pending: !i.Usable(),
		WebhookURL: a.svc.WebhookURL(i.ID), CreatedBy: i.CreatedBy, CreatedAt: i.CreatedAt.UTC(),
	}
}
