package agentapi

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

func showItem(i agent.Item) object {
	o := object{
		{"namespace", i.Namespace}, {"key", i.Key}, {"value", orNull(i.Value)},
		{"created_at", stamp(i.CreatedAt)}, {"updated_at", stamp(i.UpdatedAt)},
	}
	if i.Score != nil {
		o = append(o, member{"score", *i.Score})
	}
	return o
}

func (a *API) storeOp(ctx context.Context, op agent.StoreOp) (agent.StoreResult, error) {
	results, err := a.engine.StoreBatch(ctx, []agent.StoreOp{op})
	if err != nil {
		return agent.StoreResult{}, err
	}
	if len(results) != 1 {
		return agent.StoreResult{}, fmt.Errorf("the store answered %d results to one operation", len(results))
	}
	return results[0], nil
}

// checkNamespace refuses labels that could not be told apart in a dot-joined namespace (reference 7).
func checkNamespace(namespace []string) error { return agent.CheckNamespace(namespace) }

// putItem answers PUT /store/items (reference 7).
func (a *API) putItem(w http.ResponseWriter, r *http.Request) error {
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	put := &agent.PutOp{Namespace: b.list("namespace"), Key: b.text("key"), Value: b.object("value"), Index: b.index()}
	b.required("key")
	b.required("value")
	put.TTL = b.minutes("ttl")
	if err := agent.CheckFields(put.Index); err != nil {
		b.wrong("index", "%v", err)
	}
	if err := b.err(); err != nil {
		return err
	}
	if len(put.Namespace) == 0 {
		return slipway.Errorf(slipway.CodeBadRequest, "Namespace is required")
	}
	return a.change(w, r, put)
}

// index says what of an item is searched by similarity: false is nothing, else a list of paths.
func (b *body) index() json.RawMessage {
	raw := b.raw("index")
	var paths []string
	if raw != nil && string(raw) != "false" && json.Unmarshal(raw, &paths) != nil {
		b.wrong("index", "must be false or a list of paths, got %s", excerpt(raw))
	}
	return raw
}

func (b *body) minutes(name string) *float64 {
	var f float64
	if !b.take(name, "a number of minutes", &f) {
		return nil
	}
	if f <= 0 || math.IsInf(f, 0) {
		b.wrong(name, "must be a positive number of minutes, got %v", f)
	}
	return &f
}

// change puts an item, or deletes it if it has no value.
func (a *API) change(w http.ResponseWriter, r *http.Request, put *agent.PutOp) error {
	if err := checkNamespace(put.Namespace); err != nil {
		return err
	}
	if _, err := a.storeOp(r.Context(), agent.StoreOp{Put: put}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) deleteItem(w http.ResponseWriter, r *http.Request) error {
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	put := &agent.PutOp{Namespace: b.list("namespace"), Key: b.text("key")}
	b.required("key")
	if err := b.err(); err != nil {
		return err
	}
	return a.change(w, r, put)
}

// getItem answers GET /store/items; a missing item is null.
func (a *API) getItem(w http.ResponseWriter, r *http.Request) error {
	get := &agent.GetOp{Namespace: queryNamespace(r), Key: query(r, "key")}
	if get.Key == "" {
		return slipway.Errorf(slipway.CodeInvalid, "query.key: Field required")
	}
	if err := checkNamespace(get.Namespace); err != nil {
		return err
	}
	if query(r, "refresh_ttl") != "" {
		refresh, err := queryBool(r, "refresh_ttl")
		if err != nil {
			return err
		}
		get.RefreshTTL = &refresh
	}
	result, err := a.storeOp(r.Context(), agent.StoreOp{Get: get})
	if err != nil {
		return err
	}
	if result.Item == nil {
		return write(w, nil)
	}
	return write(w, showItem(*result.Item))
}

// queryNamespace is dot-joined or repeated.
func queryNamespace(r *http.Request) []string {
	values := r.URL.Query()["namespace"]
	switch {
	case len(values) > 1:
		return values
	case len(values) == 0 || values[0] == "":
		return []string{}
	}
	return strings.Split(values[0], ".")
}

func (a *API) searchItems(w http.ResponseWriter, r *http.Request) error {
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	search := &agent.SearchOp{
		Prefix: b.list("namespace_prefix"), Filter: b.object("filter"), Query: b.text("query"),
		Limit: b.integer("limit", 10, 1, 1000), Offset: b.integer("offset", 0, 0, 1<<31),
	}
	if err := agent.CheckItemFilter(search.Filter); err != nil {
		b.wrong("filter", "%v", err)
	}
	var refresh bool
	if b.take("refresh_ttl", "true or false", &refresh) {
		search.RefreshTTL = &refresh
	}
	if err := b.err(); err != nil {
		return err
	}
	result, err := a.storeOp(r.Context(), agent.StoreOp{Search: search})
	if err != nil {
		return err
	}
	return write(w, object{{"items", collect(result.Items, showItem)}})
}

func (a *API) listNamespaces(w http.ResponseWriter, r *http.Request) error {
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	list := &agent.NamespacesOp{
		Prefix: b.list("prefix"), Suffix: b.list("suffix"), MaxDepth: b.integer("max_depth", 0, 1, 1000),
		Limit: b.integer("limit", 100, 1, 1000), Offset: b.integer("offset", 0, 0, 1<<31),
	}
	if err := b.err(); err != nil {
		return err
	}
	result, err := a.storeOp(r.Context(), agent.StoreOp{Namespaces: list})
	if err != nil {
		return err
	}
	if result.Namespaces == nil {
		result.Namespaces = [][]string{}
	}
	return write(w, object{{"namespaces", result.Namespaces}})
}
