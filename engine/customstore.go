package engine

import (
	"context"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// customBatch runs operations in the store of the application.
func (e *Engine) customBatch(ctx context.Context, ops []agent.StoreOp) ([]agent.StoreResult, error) {
	w, err := e.partWorker(ctx, agent.PartStore)
	if err != nil {
		return nil, err
	}
	if err := mayPutAll(ctx, w, ops); err != nil {
		return nil, err
	}
	results, err := agent.CustomStoreBatch(ctx, w, ops)
	if err != nil {
		return nil, err
	}
	for i, op := range ops {
		if results[i], err = allowed(op, results[i]); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// mayPutAll refuses to change an item that the caller may not see, or into one that it may not.
func mayPutAll(ctx context.Context, w agent.Worker, ops []agent.StoreOp) error {
	for _, op := range ops {
		p := op.Put
		if p == nil || p.Filter == nil {
			continue
		}
		there, err := agent.CustomStoreBatch(ctx, w, []agent.StoreOp{{Get: &agent.GetOp{Namespace: p.Namespace, Key: p.Key}}})
		if err != nil {
			return err
		}
		was, deleted := there[0].Item, absent(p.Value)
		if was != nil && !p.Filter.AllowsItem(was.Namespace, was.Key, was.Value) || !deleted && !p.Filter.AllowsItem(p.Namespace, p.Key, p.Value) {
			return slipway.Errorf(slipway.CodeForbidden, "Not authorized")
		}
	}
	return nil
}

// allowed leaves out what the caller may not see.
func allowed(op agent.StoreOp, r agent.StoreResult) (agent.StoreResult, error) {
	switch {
	case op.Get != nil && r.Item != nil && !op.Get.Filter.AllowsItem(r.Item.Namespace, r.Item.Key, r.Item.Value):
		return r, slipway.Errorf(slipway.CodeNotFound, "Item not found")
	case op.Search != nil && op.Search.Access != nil:
		seen := make([]agent.Item, 0, len(r.Items))
		for _, i := range r.Items {
			if op.Search.Access.AllowsItem(i.Namespace, i.Key, i.Value) {
				seen = append(seen, i)
			}
		}
		r.Items = seen
	case op.Namespaces != nil && op.Namespaces.Access != nil:
		r.Namespaces = [][]string{} // the application's store does not tell whose items are in them
	}
	return r, nil
}
