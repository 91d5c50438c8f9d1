package control

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/slipway-dev/slipway"
)

// sealedAs is the name under which an integration's credentials are sealed.
const sealedAs = "integration credentials"

// NewIntegration is an integration that was just made, with what to enter at the host. The secret is shown this once.
type NewIntegration struct {
	slipway.Integration
	WebhookSecret string
}

// WebhookURL is where the host sends its deliveries for an integration.
func (s *Service) WebhookURL(id string) string { return s.cfg.BaseURL + "/webhooks/githost/" + id }

// CreateIntegration makes an integration once the host has taken its credentials.
func (s *Service) CreateIntegration(ctx context.Context, who slipway.Principal, in slipway.IntegrationCreate) (NewIntegration, error) {
	if err := authorize(who, mayDelete); err != nil {
		return NewIntegration{}, err
	}
	if err := in.Validate(s.cfg.PlainHosts); err != nil {
		return NewIntegration{}, err
	}
	secret, err := s.webhookSecret(in.Secrets.WebhookSecret)
	if err != nil {
		return NewIntegration{}, err
	}
	in.Secrets.WebhookSecret = secret
	now := s.clock()
	i := slipway.Integration{
		ID: s.ids(), TenantID: who.TenantID, Kind: in.Kind, Name: in.Name, HostURL: trimmed(in.HostURL), APIURL: trimmed(in.APIURL),
		CreatedBy: who.ID, CreatedAt: now, UpdatedAt: now,
	}
	if err := s.tryIntegration(ctx, i, in.Secrets); err != nil {
		return NewIntegration{}, wrap("create integration", err)
	}
	if err := s.putIntegration(ctx, who, slipway.Integration{}, &i, in.Secrets); err != nil {
		return NewIntegration{}, wrap("create integration", err)
	}
	return NewIntegration{i, secret}, nil
}

func (s *Service) webhookSecret(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	var raw [32]byte
	if _, err := io.ReadFull(s.random, raw[:]); err != nil {
		return "", fmt.Errorf("draw a webhook secret: %w", err)
	}
	return hex.EncodeToString(raw[:]), nil
}

// tryIntegration asks the host for a repository, so that a wrong address or token shows at once and not at the first build.
func (s *Service) tryIntegration(ctx context.Context, i slipway.Integration, secrets slipway.IntegrationSecrets) error {
	host, err := s.hosts.open(i, secrets)
	if err != nil {
		return err
	}
	if _, _, err = host.Repositories(ctx, "", 1); err == nil {
		return nil
	}
	if slipway.ErrorCode(err) == slipway.CodeInternal {
		return err
	}
	var problems slipway.Problems
	problems.Add([]any{"body", "host_url"}, "the host cannot be used: %s", err)
	return problems.Err()
}

// putIntegration stores a new integration with its credentials; before is what was described of it, zero for nothing.
func (s *Service) putIntegration(ctx context.Context, who slipway.Principal, before slipway.Integration, i *slipway.Integration, secrets slipway.IntegrationSecrets) error {
	text, err := json.Marshal(secrets)
	if err != nil {
		return err
	}
	if i.Sealed, err = s.sealer.Seal(i.TenantID, i.ID, sealedAs, string(text)); err != nil {
		return fmt.Errorf("seal credentials: %w", err)
	}
	return s.update(ctx, func(tx slipway.Tx) error {
		if err := tx.PutIntegration(*i); err != nil {
			return err
		}
		return s.auditDiff(tx, who, "create_integration", i.ID, map[string]any{"name": i.Name, "kind": i.Kind, "host_url": i.HostURL},
			integrationView(before), integrationView(*i))
	})
}

// integrationView is what the audit log compares of an integration; nil for none.
func integrationView(i slipway.Integration) map[string]any {
	if i.ID == "" {
		return nil
	}
	view := map[string]any{"name": i.Name, "kind": i.Kind, "host_url": i.HostURL, "api_url": given(i.APIURL), "app_slug": given(i.AppSlug)}
	for name, id := range map[string]int64{"app_id": i.AppID, "installation_id": i.InstallationID} {
		if id != 0 {
			view[name] = id
		}
	}
	if len(i.Sealed) > 0 {
		view["credentials"] = slipway.MaskedSecret // AuditDiff masks it anyway: that there are some is what is told
	}
	return view
}

func (s *Service) unseal(i slipway.Integration) (slipway.IntegrationSecrets, error) {
	var secrets slipway.IntegrationSecrets
	text, err := s.sealer.Open(i.TenantID, i.ID, sealedAs, i.Sealed)
	if err != nil {
		return secrets, slipway.Errorf(slipway.CodeInvalid,
			"the credentials of the integration %q cannot be opened with this installation's master key: restore master.key from a backup, or make the integration again", i.Name)
	}
	return secrets, json.Unmarshal([]byte(text), &secrets)
}

// Integrations returns one page of the caller's tenant, newest first, without credentials.
func (s *Service) Integrations(ctx context.Context, who slipway.Principal, q slipway.IntegrationQuery) ([]slipway.Integration, error) {
	if err := authorize(who, mayRead); err != nil {
		return nil, err
	}
	q.TenantID = who.TenantID
	var out []slipway.Integration
	err := s.store.View(ctx, func(tx slipway.Tx) (err error) {
		out, err = tx.Integrations(q)
		return err
	})
	return out, wrap("list integrations", err)
}

// DeleteIntegration forgets an integration and its credentials. CodeConflict while a deployment is built with it.
func (s *Service) DeleteIntegration(ctx context.Context, who slipway.Principal, id string) error {
	if err := authorize(who, mayDelete); err != nil {
		return err
	}
	err := s.update(ctx, func(tx slipway.Tx) error {
		i, err := tx.Integration(who.TenantID, id)
		if err != nil {
			return integrationNotFound(id, err)
		}
		users, err := tx.Deployments(slipway.DeploymentQuery{TenantID: who.TenantID, Integration: id, Limit: 1})
		if err != nil {
			return err
		}
		if len(users) > 0 {
			return slipway.Errorf(slipway.CodeConflict, "deployment %q is built with the integration %q; delete it first", users[0].Name, i.Name)
		}
		if err := tx.DeleteIntegration(id); err != nil {
			return err
		}
		return s.auditDiff(tx, who, "delete_integration", id, map[string]any{"name": i.Name, "kind": i.Kind}, integrationView(i), nil)
	})
	if err == nil {
		s.hosts.forget(id)
	}
	return wrap("delete integration", err)
}

func integrationNotFound(id string, err error) error {
	if slipway.ErrorCode(err) != slipway.CodeNotFound {
		return err
	}
	return slipway.Errorf(slipway.CodeNotFound, "Integration ID %s not found.", id)
}

// Repositories returns one page of what an integration offers to deploy (spec 4.3), and the cursor of the next.
func (s *Service) Repositories(ctx context.Context, who slipway.Principal, id, cursor string, limit int) ([]slipway.Repository, string, error) {
	if err := authorize(who, mayRead); err != nil {
		return nil, "", err
	}
	_, host, err := s.host(ctx, who.TenantID, id)
	if err != nil {
		return nil, "", wrap("list repositories", err)
	}
	page, next, err := host.Repositories(ctx, cursor, limit)
	return page, next, wrap("list repositories", err)
}

// host returns an integration of a tenant ("" = any) and the host it leads to.
func (s *Service) host(ctx context.Context, tenantID, id string) (slipway.Integration, slipway.GitHost, error) {
	var i slipway.Integration
	err := s.store.View(ctx, func(tx slipway.Tx) (err error) {
		i, err = tx.Integration(tenantID, id)
		return err
	})
	if err != nil {
		return i, nil, integrationNotFound(id, err)
	}
	if !i.Usable() {
		return i, nil, slipway.Errorf(slipway.CodeConflict, "the GitHub App of the integration %q was not made yet; run `slipway integrations github create` again", i.Name)
	}
	host, err := s.hosts.get(i, func() (slipway.IntegrationSecrets, error) { return s.unseal(i) })
	return i, host, err
}

// checkRepository says whether a new deployment's integration is the tenant's and offers its repository (spec 2.2).
func (s *Service) checkRepository(ctx context.Context, who slipway.Principal, in slipway.DeploymentCreate) error {
	cfg := in.SourceConfig
	if in.Source != slipway.SourceGithost || cfg.IntegrationID == nil || cfg.RepoURL == nil || !slipway.IsUUID(*cfg.IntegrationID) {
		return nil // the ground has its rules about those
	}
	var problems slipway.Problems
	i, host, err := s.host(ctx, who.TenantID, *cfg.IntegrationID)
	switch slipway.ErrorCode(err) {
	case "":
	case slipway.CodeNotFound:
		problems.Add([]any{"body", "source_config", "integration_id"}, "integration_id %q is no integration of this tenant; GET /v1/integrations/githost/install lists them", *cfg.IntegrationID)
		return problems.Err()
	default:
		return err
	}
	_, err = host.Repository(ctx, *cfg.RepoURL)
	switch slipway.ErrorCode(err) {
	case slipway.CodeNotFound, slipway.CodeBadRequest:
		problems.Add([]any{"body", "source_config", "repo_url"}, "the integration %q does not offer this repository: %s", i.Name, err)
		return problems.Err()
	}
	return err
}

func trimmed(address string) string { return strings.TrimRight(address, "/") }
