package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// APIKey is what is known of a key; the key itself is shown once, when it is made.
type APIKey struct {
	ID               string     `json:"id"`
	Name             *string    `json:"name"`
	Prefix           string     `json:"prefix"`
	Role             string     `json:"role"`      // admin, editor, viewer or listener
	TenantID         *string    `json:"tenant_id"` // nil = organisation-wide
	OrganizationWide bool       `json:"organization_wide"`
	DeploymentID     *string    `json:"deployment_id"` // the one deployment that a deploy key acts on
	ListenerID       *string    `json:"listener_id"`   // the one listener that a key of role listener speaks for
	CreatedAt        time.Time  `json:"created_at"`
	CreatedBy        *string    `json:"created_by"`
	ExpiresAt        *time.Time `json:"expires_at"`
	RevokedAt        *time.Time `json:"revoked_at"`
	LastUsedAt       *time.Time `json:"last_used_at"`
	ReplacedBy       *string    `json:"replaced_by"`
}

// NewAPIKey is a key that was just made.
type NewAPIKey struct {
	Key string `json:"key"`
	APIKey
}

// APIKeyCreate is the body of POST /v2/api-keys.
type APIKeyCreate struct {
	Name             string     `json:"name,omitempty"`
	Role             string     `json:"role,omitempty"` // a deploy key is editor unless this says viewer
	OrganizationWide bool       `json:"organization_wide,omitempty"`
	DeploymentID     *string    `json:"deployment_id,omitempty"` // makes a deploy key
	ListenerID       *string    `json:"listener_id,omitempty"`   // with role listener: the listener it is for
	ExpiresAt        *time.Time `json:"expires_at,omitempty"`
}

// APIKeyRotate is the body of a rotation.
type APIKeyRotate struct {
	GraceSeconds int64      `json:"grace_seconds,omitempty"` // how long the old key goes on being valid
	ExpiresAt    *time.Time `json:"expires_at,omitempty"`    // of the new key; nil = as long as the old one was to live
}

// APIKeyFilter selects keys; what is empty selects nothing out.
type APIKeyFilter struct {
	DeploymentID     string
	OrganizationWide *bool
	Limit, Offset    int // 1..100; 0 = the server's own 20
}

// APIKeys lists one page, newest first, also of keys not valid any more; next is the offset of the following page.
func (c *Client) APIKeys(ctx context.Context, f APIKeyFilter) (list []APIKey, next int, err error) {
	q := url.Values{}
	text(q, "deployment_id", f.DeploymentID)
	truth(q, "organization_wide", f.OrganizationWide)
	number(q, "limit", f.Limit)
	number(q, "offset", f.Offset)
	var out page[APIKey]
	err = c.do(ctx, http.MethodGet, "/v2/api-keys", q, nil, &out)
	return out.Resources, out.Offset, err
}

// CreateAPIKey makes a key.
func (c *Client) CreateAPIKey(ctx context.Context, in APIKeyCreate) (NewAPIKey, error) {
	var out NewAPIKey
	err := c.do(ctx, http.MethodPost, "/v2/api-keys", nil, in, &out)
	return out, err
}

// RotateAPIKey replaces a key by a new one.
func (c *Client) RotateAPIKey(ctx context.Context, id string, in APIKeyRotate) (NewAPIKey, error) {
	var out NewAPIKey
	err := c.do(ctx, http.MethodPost, "/v2/api-keys/"+url.PathEscape(id)+"/rotate", nil, in, &out)
	return out, err
}

// RevokeAPIKey makes a key invalid at once.
func (c *Client) RevokeAPIKey(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/v2/api-keys/"+url.PathEscape(id), nil, nil, nil)
}
