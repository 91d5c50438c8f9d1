package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// PushToken lets a container client push images for a while.
type PushToken struct {
	Token       string    `json:"token"`        // the password; the user is oauth2accesstoken
	RegistryURL string    `json:"registry_url"` // host and path without a scheme; push any repository below it
	ExpiresAt   time.Time `json:"expires_at"`
}

// PushToken asks for a token to push images of an internal_container deployment.
func (c *Client) PushToken(ctx context.Context, deploymentID string) (PushToken, error) {
	var out PushToken
	err := c.do(ctx, http.MethodPost, "/v2/deployments/"+url.PathEscape(deploymentID)+"/push-token", nil, nil, &out)
	return out, err
}
