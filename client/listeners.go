package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Listener is the answer of the listener calls (control-plane reference 3).
type Listener struct {
	ID            string        `json:"id"`
	Version       *string       `json:"version"`
	ComputeType   string        `json:"compute_type"` // "cluster"
	ComputeID     string        `json:"compute_id"`
	ComputeConfig ComputeConfig `json:"compute_config"`
	CreatedAt     time.Time     `json:"created_at"`
	UpdatedAt     time.Time     `json:"updated_at"`
	LastSeenAt    *time.Time    `json:"last_seen_at"` // nil = never
	Online        bool          `json:"online"`
}

// ComputeConfig says which part of the compute a listener looks after.
type ComputeConfig struct {
	ClusterNamespaces *[]string `json:"cluster_namespaces,omitempty"` // nil = every one
}

// ListenerCreate is the body of POST /v2/listeners.
type ListenerCreate struct {
	ComputeType   string        `json:"compute_type"`
	ComputeID     string        `json:"compute_id"`
	ComputeConfig ComputeConfig `json:"compute_config"`
	Version       *string       `json:"version,omitempty"`
}

// ListenerPatch is the body of PATCH /v2/listeners/{id}; nil fields stay as they are, and type and id of the compute cannot change.
type ListenerPatch struct {
	ComputeType   *string        `json:"compute_type,omitempty"`
	ComputeID     *string        `json:"compute_id,omitempty"`
	ComputeConfig *ComputeConfig `json:"compute_config,omitempty"`
	Version       *string        `json:"version,omitempty"`
}

func listenerPath(id string) string { return "/v2/listeners/" + url.PathEscape(id) }

// Listeners lists one page, newest first; next is the offset of the following page.
func (c *Client) Listeners(ctx context.Context, limit, offset int) (list []Listener, next int, err error) {
	var out page[Listener]
	err = c.do(ctx, http.MethodGet, "/v2/listeners", pageOf(limit, offset), nil, &out)
	return out.Resources, out.Offset, err
}

// CreateListener makes a listener.
func (c *Client) CreateListener(ctx context.Context, in ListenerCreate) (Listener, error) {
	var out Listener
	err := c.do(ctx, http.MethodPost, "/v2/listeners", nil, in, &out)
	return out, err
}

// Listener reads one listener by id.
func (c *Client) Listener(ctx context.Context, id string) (Listener, error) {
	var out Listener
	err := c.do(ctx, http.MethodGet, listenerPath(id), nil, nil, &out)
	return out, err
}

// PatchListener changes a listener.
func (c *Client) PatchListener(ctx context.Context, id string, in ListenerPatch) (Listener, error) {
	var out Listener
	err := c.do(ctx, http.MethodPatch, listenerPath(id), nil, in, &out)
	return out, err
}

// DeleteListener deletes a listener that no deployment uses.
func (c *Client) DeleteListener(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, listenerPath(id), nil, nil, nil)
}
