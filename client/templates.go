package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Template is a prebuilt application for source internal_template.
type Template struct {
	ID          string `json:"id"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Language    string `json:"language"` // "python" or "node"
}

// TracingProject is the record under which a deployment's traces are counted.
type TracingProject struct {
	ID           string    `json:"id"`
	TenantID     string    `json:"tenant_id"`
	Name         string    `json:"name"`
	DeploymentID *string   `json:"deployment_id"` // nil = its deployment is gone
	CreatedAt    time.Time `json:"created_at"`
}

// page is the shape of every list of the API.
type page[T any] struct {
	Resources []T `json:"resources"`
	Offset    int `json:"offset"`
}

func pageOf(limit, offset int) url.Values {
	return url.Values{"limit": {strconv.Itoa(limit)}, "offset": {strconv.Itoa(offset)}}
}

// Templates lists one page of the prebuilt templates; next is the offset of the following page.
func (c *Client) Templates(ctx context.Context, limit, offset int) (list []Template, next int, err error) {
	var out page[Template]
	err = c.do(ctx, http.MethodGet, "/v2/templates", pageOf(limit, offset), nil, &out)
	return out.Resources, out.Offset, err
}

// TracingProjects lists one page, newest first; next is the offset of the following page.
func (c *Client) TracingProjects(ctx context.Context, limit, offset int) (list []TracingProject, next int, err error) {
	var out page[TracingProject]
	err = c.do(ctx, http.MethodGet, "/v2/tracing-projects", pageOf(limit, offset), nil, &out)
	return out.Resources, out.Offset, err
}

// TracingProject reads one tracing project by id.
func (c *Client) TracingProject(ctx context.Context, id string) (TracingProject, error) {
	var out TracingProject
	err := c.do(ctx, http.MethodGet, "/v2/tracing-projects/"+url.PathEscape(id), nil, nil, &out)
	return out, err
}
