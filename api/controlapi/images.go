package controlapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway/api/authn"
)

// PushToken lets a client push images (control-plane reference 5, "Image").
type PushToken struct {
	Token       string    `json:"token" required:"true" doc:"the password to log in with; the user is oauth2accesstoken"`
	RegistryURL string    `json:"registry_url" required:"true" doc:"host and path without a scheme; push any repository below it"`
	ExpiresAt   time.Time `json:"expires_at" required:"true" doc:"when the token ceases to be good"`
}

func (a *api) images() {
	huma.Register(a.huma, operation("create_push_token", http.MethodPost, deploymentsPath+"/{deployment_id}/push-token", "Ask for a token to push images with", 400, 404), a.newPushToken)
}

func (a *api) newPushToken(ctx context.Context, in *DeploymentPath) (*struct{ Body PushToken }, error) {
	token, err := a.svc.NewPushToken(ctx, authn.Principal(ctx), in.DeploymentID)
	if err != nil {
		return nil, a.problem(err)
	}
	return &struct{ Body PushToken }{PushToken{Token: token.Token, RegistryURL: token.RegistryURL, ExpiresAt: token.ExpiresAt.UTC()}}, nil
}
