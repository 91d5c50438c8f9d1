package client

import (
	"context"
	"net/http"
	"net/url"
)

// DeleteDeployment deletes a deployment; it can be restored until its PurgeAt.
func (c *Client) DeleteDeployment(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/v2/deployments/"+url.PathEscape(id), nil, nil, nil)
}

// Deletions is what became of a deletion of several deployments.
type Deletions struct {
	Deleted []string `json:"deleted"`
	Failed  []struct {
		ID     string `json:"id"`
		Detail string `json:"detail"`
	} `json:"failed"`
}

// DeleteDeployments deletes up to 100 deployments, each for itself.
func (c *Client) DeleteDeployments(ctx context.Context, ids []string) (Deletions, error) {
	var out Deletions
	err := c.do(ctx, http.MethodDelete, "/v2/deployments", url.Values{"deployment_ids": ids}, nil, &out)
	return out, err
}

// RestoreDeployment brings a deleted deployment back.
func (c *Client) RestoreDeployment(ctx context.Context, id string) (Deployment, error) {
	var out Deployment
	err := c.do(ctx, http.MethodPost, "/v2/deployments/"+url.PathEscape(id)+"/restore", nil, nil, &out)
	return out, err
}

// PurgeDeployment ends the retention of a deleted deployment now; its data goes for good.
func (c *Client) PurgeDeployment(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodPost, "/v2/deployments/"+url.PathEscape(id)+"/purge", nil, nil, nil)
}

// DeletedDeployment returns the deleted deployment with this id; found is false once nothing is left of it.
func (c *Client) DeletedDeployment(ctx context.Context, id string) (d Deployment, found bool, err error) {
	return c.deleted(ctx, url.Values{"deployment_ids": {id}})
}

// DeletedDeploymentByName returns the deleted deployment with exactly this name; found is false without one.
func (c *Client) DeletedDeploymentByName(ctx context.Context, name string) (d Deployment, found bool, err error) {
	return c.deleted(ctx, url.Values{"name": {name}})
}

func (c *Client) deleted(ctx context.Context, query url.Values) (d Deployment, found bool, err error) {
	var out struct {
		Resources []Deployment `json:"resources"`
	}
	query.Set("status", "AWAITING_DELETE")
	err = c.do(ctx, http.MethodGet, "/v2/deployments", query, nil, &out)
	if err != nil || len(out.Resources) == 0 {
		return Deployment{}, false, err
	}
	return out.Resources[0], true, nil
}
