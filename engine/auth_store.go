package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// StoreBatch is Engine.StoreBatch with a store:… question per operation. Handlers may move an operation to another
// namespace; the filter is held against the items (reference 7).
func (g *Guard) StoreBatch(ctx context.Context, ops []agent.StoreOp) ([]agent.StoreResult, error) {
	if !g.e.guarded() {
		return g.e.StoreBatch(ctx, ops)
	}
	allowed := make([]agent.StoreOp, 0, len(ops))
	for _, op := range ops {
		op, err := g.allowOp(ctx, op)
		if err != nil {
			return nil, err
		}
		allowed = append(allowed, op)
	}
	return g.e.StoreBatch(ctx, allowed)
}

func (g *Guard) allowOp(ctx context.Context, op agent.StoreOp) (agent.StoreOp, error) {
	switch {
	case op.Get != nil:
		return g.allowGet(ctx, *op.Get)
	case op.Put != nil:
		return g.allowPut(ctx, *op.Put)
	case op.Search != nil:
		return g.allowSearch(ctx, *op.Search)
	case op.Namespaces != nil:
		return g.allowNamespaces(ctx, *op.Namespaces)
	}
	return op, nil
}

func (g *Guard) allowGet(ctx context.Context, op agent.GetOp) (agent.StoreOp, error) {
	v, err := g.ask(ctx, "store", "get", map[string]any{"namespace": path(op.Namespace), "key": op.Key})
	if err == nil {
		op.Filter = v.filter
		op.Namespace, err = v.namespace(op.Namespace)
	}
	return agent.StoreOp{Get: &op}, err
}

func (g *Guard) allowPut(ctx context.Context, op agent.PutOp) (agent.StoreOp, error) {
	action, value := "put", map[string]any{"namespace": path(op.Namespace), "key": op.Key}
	if absent(op.Value) {
		action = "delete"
	} else {
		value["value"], value["index"] = op.Value, null(op.Index)
	}
	v, err := g.ask(ctx, "store", action, value)
	if err == nil {
		op.Filter = v.filter
		if action == "put" {
			op.Value, op.Index = v.over("value", op.Value), v.over("index", op.Index)
		}
		op.Namespace, err = v.namespace(op.Namespace)
	}
	if err == nil && len(op.Namespace) == 0 && action == "put" {
		err = slipway.Errorf(slipway.CodeBadRequest, "Namespace is required")
	}
	return agent.StoreOp{Put: &op}, err
}

func (g *Guard) allowSearch(ctx context.Context, op agent.SearchOp) (agent.StoreOp, error) {
	v, err := g.ask(ctx, "store", "search", map[string]any{
		"namespace": path(op.Prefix), "filter": null(op.Filter), "limit": op.Limit, "offset": op.Offset, "query": text(op.Query),
	})
	if err == nil {
		op.Access, op.Filter = v.filter, v.over("filter", op.Filter)
		op.Prefix, err = v.namespace(op.Prefix)
	}
	return agent.StoreOp{Search: &op}, err
}

func (g *Guard) allowNamespaces(ctx context.Context, op agent.NamespacesOp) (agent.StoreOp, error) {
	value := map[string]any{"namespace": nil, "suffix": nil, "max_depth": nil, "limit": op.Limit, "offset": op.Offset}
	if len(op.Prefix) > 0 {
		value["namespace"] = op.Prefix
	}
	if len(op.Suffix) > 0 {
		value["suffix"] = op.Suffix
	}
	if op.MaxDepth > 0 {
		value["max_depth"] = op.MaxDepth
	}
	v, err := g.ask(ctx, "store", "list_namespaces", value)
	if err == nil {
		op.Access = v.filter
		op.Prefix, err = v.namespace(op.Prefix)
	}
	return agent.StoreOp{Namespaces: &op}, err
}

// path is a namespace as handlers see it: an empty one is a list, too.
func path(namespace []string) []string {
	if namespace == nil {
		return []string{}
	}
	return namespace
}

// namespace is where the operation goes after its handler; what a handler made is held to the rules of clients.
func (v verdict) namespace(was []string) ([]string, error) {
	raw, there := v.value["namespace"]
	if !there || absent(raw) {
		return was, nil
	}
	var now []string
	if err := json.Unmarshal(raw, &now); err != nil {
		return nil, fmt.Errorf("read the namespace that a handler of the store set: %w", err)
	}
	return now, agent.CheckNamespace(now)
}
