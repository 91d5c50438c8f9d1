package client

import (
	"context"
	"net/http"
	"net/url"
)

// ChangeDeploymentTier sets the tier of a deployment, such as "DEDICATED_M".
func (c *Client) ChangeDeploymentTier(ctx context.Context, id, tier string) (Deployment, error) {
	var out Deployment
	err := c.do(ctx, http.MethodPatch, "/v2/deployments/"+url.PathEscape(id)+"/deployment-tier", nil, map[string]string{"deployment_tier": tier}, &out)
	return out, err
}

// ChangeResourceTiers sets the tiers of compute and database, each "" for unchanged.
func (c *Client) ChangeResourceTiers(ctx context.Context, id, compute, database string) (Deployment, error) {
	in := map[string]string{}
	if compute != "" {
		in["compute_tier"] = compute
	}
	if database != "" {
		in["database_tier"] = database
	}
	var out Deployment
	err := c.do(ctx, http.MethodPatch, "/v2/deployments/"+url.PathEscape(id)+"/resource-tiers", nil, in, &out)
	return out, err
}

// FreeCount returns how many deployments are of type dev_free.
func (c *Client) FreeCount(ctx context.Context) (int, error) {
	var out struct {
		Count int `json:"count"`
	}
	err := c.do(ctx, http.MethodGet, "/v2/deployments/free-count", nil, nil, &out)
	return out.Count, err
}
