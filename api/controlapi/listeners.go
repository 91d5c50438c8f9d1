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

// Listener is the answer about a listener (control-plane reference 3).
type Listener struct {
	ID            string        `json:"id" required:"true" format:"uuid" doc:"id of the listener"`
	Version       *string       `json:"version" required:"true" doc:"version of the program that listens"`
	ComputeType   string        `json:"compute_type" required:"true" enum:"cluster" doc:"what it looks after"`
	ComputeID     string        `json:"compute_id" required:"true" doc:"e.g. the cluster's name; unique in the tenant"`
	ComputeConfig ComputeConfig `json:"compute_config" required:"true" doc:"which part of it"`
	CreatedAt     time.Time     `json:"created_at" required:"true" doc:"when it was made"`
	UpdatedAt     time.Time     `json:"updated_at" required:"true" doc:"when it was last changed"`
	LastSeenAt    *time.Time    `json:"last_seen_at" required:"true" doc:"when it last called; null = never"`
	Online        bool          `json:"online" required:"true" doc:"whether it was seen within the last 60 seconds"`
}

// ComputeConfig says which part of the compute a listener looks after.
type ComputeConfig struct {
	ClusterNamespaces *[]string `json:"cluster_namespaces" doc:"namespaces that deployments may be placed in; null = every one"`
}

// ListenersList is one page of listeners; offset is that of the next page.
type ListenersList struct {
	Resources []Listener `json:"resources" required:"true" nullable:"false" doc:"the listeners of this page, newest first"`
	Offset    int        `json:"offset" required:"true" doc:"the offset of the next page"`
}

// ListenerCreateRequest is the body of POST /v2/listeners.
type ListenerCreateRequest struct {
	ComputeType   string        `json:"compute_type" required:"true" enum:"cluster" doc:"what it looks after"`
	ComputeID     string        `json:"compute_id" required:"true" doc:"e.g. the cluster's name; unique in the tenant, immutable"`
	ComputeConfig ComputeConfig `json:"compute_config" required:"true" doc:"which part of it"`
	Version       *string       `json:"version" doc:"version of the program that listens"`
}

// ListenerPatchRequest is the body of PATCH /v2/listeners/{listener_id}; null leaves a field as it is.
type ListenerPatchRequest struct {
	ComputeType   *string        `json:"compute_type" doc:"immutable; its stored value may be sent back"`
	ComputeID     *string        `json:"compute_id" doc:"immutable; its stored value may be sent back"`
	ComputeConfig *ComputeConfig `json:"compute_config" doc:"replaces the stored one as a whole"`
	Version       *string        `json:"version" doc:"version of the program that listens"`
}

const listenersPath = "/v2/listeners"

// ListenerPath is the path parameter of calls about one listener.
type ListenerPath struct {
	ListenerID string `path:"listener_id" format:"uuid" doc:"id of the listener"`
}

type listenerOutput struct{ Body Listener }

type createListenerInput struct{ Body ListenerCreateRequest }

type patchListenerInput struct {
	ListenerPath
	Body ListenerPatchRequest
}

func (a *api) listeners() {
	one := listenersPath + "/{listener_id}"
	huma.Register(a.huma, operation("list_listeners", http.MethodGet, listenersPath, "List listeners"), a.listListeners)
	huma.Register(a.huma, created(operation("create_listener", http.MethodPost, listenersPath, "Create a listener", 409)), a.createListener)
	huma.Register(a.huma, operation("get_listener", http.MethodGet, one, "Read a listener", 404), a.getListener)
	huma.Register(a.huma, operation("patch_listener", http.MethodPatch, one, "Change a listener", 400, 404, 409), a.patchListener)
	huma.Register(a.huma, operation("delete_listener", http.MethodDelete, one, "Delete a listener that no deployment uses", 400, 404), a.deleteListener)
}

func (a *api) listenerAnswer(l control.Listener, err error) (*listenerOutput, error) {
	if err != nil {
		return nil, a.problem(err)
	}
	return &listenerOutput{listener(l)}, nil
}

func listener(l control.Listener) Listener {
	out := Listener{
		ID: l.ID, Version: orNull(l.Version), ComputeType: l.ComputeType, ComputeID: l.ComputeID,
		CreatedAt: l.CreatedAt.UTC(), UpdatedAt: l.UpdatedAt.UTC(), Online: l.Online,
	}
	if l.Namespaces != nil {
		out.ComputeConfig.ClusterNamespaces = &l.Namespaces
	}
	if !l.LastSeenAt.IsZero() {
		at := l.LastSeenAt.UTC()
		out.LastSeenAt = &at
	}
	return out
}

func (a *api) listListeners(ctx context.Context, in *Page) (*struct{ Body ListenersList }, error) {
	found, err := a.svc.Listeners(ctx, authn.Principal(ctx), slipway.ListenerQuery{Limit: in.Limit, Offset: in.Offset})
	if err != nil {
		return nil, a.problem(err)
	}
	list := ListenersList{Resources: []Listener{}, Offset: in.Offset + len(found)}
	for _, l := range found {
		list.Resources = append(list.Resources, listener(l))
	}
	return &struct{ Body ListenersList }{list}, nil
}

func (a *api) createListener(ctx context.Context, in *createListenerInput) (*listenerOutput, error) {
	return a.listenerAnswer(a.svc.CreateListener(ctx, authn.Principal(ctx), slipway.ListenerCreate{
		ComputeType: in.Body.ComputeType, ComputeID: in.Body.ComputeID, Namespaces: in.Body.ComputeConfig.ClusterNamespaces, Version: in.Body.Version,
	}))
}

func (a *api) getListener(ctx context.Context, in *ListenerPath) (*listenerOutput, error) {
	return a.listenerAnswer(a.svc.Listener(ctx, authn.Principal(ctx), in.ListenerID))
}

func (a *api) patchListener(ctx context.Context, in *patchListenerInput) (*listenerOutput, error) {
	patch := slipway.ListenerPatch{Version: in.Body.Version, ComputeType: in.Body.ComputeType, ComputeID: in.Body.ComputeID}
	if in.Body.ComputeConfig != nil {
		patch.Config = &slipway.ListenerCompute{Namespaces: in.Body.ComputeConfig.ClusterNamespaces}
	}
	return a.listenerAnswer(a.svc.PatchListener(ctx, authn.Principal(ctx), in.ListenerID, patch))
}

func (a *api) deleteListener(ctx context.Context, in *ListenerPath) (*struct{}, error) {
	if err := a.svc.DeleteListener(ctx, authn.Principal(ctx), in.ListenerID); err != nil {
		return nil, a.problem(err)
	}
	return nil, nil
}
