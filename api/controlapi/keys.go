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

const keysPath = "/v2/api-keys"

// APIKey is what is known of a key; the key itself is shown once, when it is made.
type APIKey struct {
	ID               string     `json:"id" required:"true" format:"uuid" doc:"id of the record"`
	Name             *string    `json:"name" required:"true" doc:"what people call it"`
	Prefix           string     `json:"prefix" required:"true" doc:"the visible beginning of the key"`
	Role             string     `json:"role" required:"true" enum:"admin,editor,viewer,listener,builder" doc:"what it may do"`
	TenantID         *string    `json:"tenant_id" required:"true" format:"uuid" doc:"the tenant it belongs to; null if it is organization-wide"`
	OrganizationWide bool       `json:"organization_wide" required:"true" doc:"whether it is valid in every tenant, which X-Tenant-Id selects"`
	DeploymentID     *string    `json:"deployment_id" required:"true" format:"uuid" doc:"the one deployment that a deploy key acts on"`
	ListenerID       *string    `json:"listener_id" required:"true" format:"uuid" doc:"the one listener that a key of role listener speaks for"`
	CreatedAt        time.Time  `json:"created_at" required:"true" doc:"when it was made"`
	CreatedBy        *string    `json:"created_by" required:"true" doc:"who made it; null if the installation did"`
	ExpiresAt        *time.Time `json:"expires_at" required:"true" doc:"when it ceases to be valid; null if never"`
	RevokedAt        *time.Time `json:"revoked_at" required:"true" doc:"when it was revoked"`
	LastUsedAt       *time.Time `json:"last_used_at" required:"true" doc:"when it was last used, up to a minute ago"`
	ReplacedBy       *string    `json:"replaced_by" required:"true" format:"uuid" doc:"the key that a rotation made in its place"`
}

// NewAPIKey is a new key with its record.
type NewAPIKey struct {
	APIKey
	Key string `json:"key" required:"true" doc:"the key itself; it is shown this one time only"`
}

// APIKeysList is one page of keys; offset is that of the next page.
type APIKeysList struct {
	Resources []APIKey `json:"resources" required:"true" nullable:"false" doc:"the keys of this page, newest first, also those not valid any more"`
	Offset    int      `json:"offset" required:"true" doc:"the offset of the next page"`
}

// APIKeyCreateRequest is the body of POST /v2/api-keys.
type APIKeyCreateRequest struct {
	Name             *string    `json:"name" doc:"what people call it; up to 100 printable characters"`
	Role             *string    `json:"role" enum:"admin,editor,viewer,listener,builder" doc:"what it may do; required but for deploy keys, which are editor unless this says viewer"`
	OrganizationWide *bool      `json:"organization_wide" doc:"valid in every tenant, which X-Tenant-Id selects; only organization-wide admins may ask for it"`
	DeploymentID     *string    `json:"deployment_id" format:"uuid" doc:"make a deploy key, which reads and updates this one deployment and nothing else"`
	ListenerID       *string    `json:"listener_id" format:"uuid" doc:"with role listener: make a key that makes the protocol calls of this one listener and nothing else"`
	ExpiresAt        *time.Time `json:"expires_at" doc:"when it ceases to be valid; absent for never"`
}

// APIKeyRotateRequest is the body of POST /v2/api-keys/{api_key_id}/rotate.
type APIKeyRotateRequest struct {
	GraceSeconds *int64     `json:"grace_seconds" minimum:"0" maximum:"2592000" doc:"how long the old key goes on being valid; 0 unless given"`
	ExpiresAt    *time.Time `json:"expires_at" doc:"when the new key ceases to be valid; unless given, it lives as long as the old one was to"`
}

// APIKeyPath is the path parameter of calls about one key.
type APIKeyPath struct {
	APIKeyID string `path:"api_key_id" format:"uuid" doc:"id of the key's record"`
}

type keysInput struct {
	Page
	DeploymentID     string `query:"deployment_id" format:"uuid" doc:"the deploy keys of this deployment"`
	OrganizationWide bool   `query:"organization_wide" default:"false" doc:"list the organization-wide keys instead of the tenant's"`
}

type keyCreateInput struct{ Body APIKeyCreateRequest }

type keyRotateInput struct {
	APIKeyPath
	Body *APIKeyRotateRequest
}

type newKeyOutput struct{ Body NewAPIKey }

func (a *api) keys() {
	access := func(op huma.Operation) huma.Operation { return reaching(control.ReachAccess, op) }
	one := keysPath + "/{api_key_id}"
	huma.Register(a.huma, access(operation("list_api_keys", http.MethodGet, keysPath, "List API keys")), a.listKeys)
	huma.Register(a.huma, access(created(operation("create_api_key", http.MethodPost, keysPath, "Create an API key"))), a.createKey)
	huma.Register(a.huma, access(operation("revoke_api_key", http.MethodDelete, one, "Revoke an API key at once", 404)), a.revokeKey)
	huma.Register(a.huma, access(created(operation("rotate_api_key", http.MethodPost, one+"/rotate", "Replace an API key by a new one", 400, 404))), a.rotateKey)
}

func apiKey(k slipway.APIKey) APIKey {
	return APIKey{
		ID: k.ID, Name: orNull(k.Name), Prefix: k.Prefix, Role: string(k.Role), TenantID: orNull(k.TenantID), OrganizationWide: k.Organisation(),
		DeploymentID: orNull(k.DeploymentID), ListenerID: orNull(k.ListenerID), CreatedAt: k.CreatedAt.UTC(), CreatedBy: orNull(k.CreatedBy), ExpiresAt: timeOrNull(k.ExpiresAt),
		RevokedAt: timeOrNull(k.RevokedAt), LastUsedAt: timeOrNull(k.LastUsedAt), ReplacedBy: orNull(k.ReplacedBy),
	}
}

func (a *api) answerKey(k control.IssuedKey, err error) (*newKeyOutput, error) {
	if err != nil {
		return nil, a.problem(err)
	}
	return &newKeyOutput{NewAPIKey{apiKey(k.APIKey), k.Key}}, nil
}

func (a *api) listKeys(ctx context.Context, in *keysInput) (*struct{ Body APIKeysList }, error) {
	q := slipway.APIKeyQuery{DeploymentID: in.DeploymentID, Limit: in.Limit, Offset: in.Offset}
	found, err := a.svc.Keys(ctx, authn.Principal(ctx), in.OrganizationWide, q)
	if err != nil {
		return nil, a.problem(err)
	}
	list := APIKeysList{Resources: []APIKey{}, Offset: in.Offset + len(found)}
	for _, k := range found {
		list.Resources = append(list.Resources, apiKey(k))
	}
	return &struct{ Body APIKeysList }{list}, nil
}

func (a *api) createKey(ctx context.Context, in *keyCreateInput) (*newKeyOutput, error) {
	b := in.Body
	return a.answerKey(a.svc.CreateKey(ctx, authn.Principal(ctx), slipway.APIKeyCreate{
		Name: value(b.Name), Role: slipway.Role(value(b.Role)), Organisation: value(b.OrganizationWide), DeploymentID: value(b.DeploymentID),
		ListenerID: value(b.ListenerID), ExpiresAt: value(b.ExpiresAt),
	}))
}

func (a *api) revokeKey(ctx context.Context, in *APIKeyPath) (*struct{}, error) {
	if err := a.svc.RevokeKey(ctx, authn.Principal(ctx), in.APIKeyID); err != nil {
		return nil, a.problem(err)
	}
	return nil, nil
}

func (a *api) rotateKey(ctx context.Context, in *keyRotateInput) (*newKeyOutput, error) {
	b := value(in.Body)
	how := slipway.Rotation{Grace: time.Duration(value(b.GraceSeconds)) * time.Second, ExpiresAt: value(b.ExpiresAt)}
	return a.answerKey(a.svc.RotateKey(ctx, authn.Principal(ctx), in.APIKeyID, how))
}
