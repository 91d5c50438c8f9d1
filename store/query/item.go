package query

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// labelEnd ends every label of a stored namespace; it is escaped inside labels.
const labelEnd = "\x1f"

func itemPath(namespace []string) string {
	var b strings.Builder
	for _, label := range namespace {
		b.WriteString(strings.NewReplacer("%", "%25", labelEnd, "%1f").Replace(label) + labelEnd)
	}
	return b.String()
}

// StoreBatch executes the operations in order (reference 15).
func (a *Agent) StoreBatch(ctx context.Context, ops []agent.StoreOp, now time.Time) ([]agent.StoreResult, error) {
	var read []itemKey // what restarts its time to live
	run := func(c Conn) ([]agent.StoreResult, error) {
		out := make([]agent.StoreResult, len(ops))
		read = read[:0]
		for i, op := range ops {
			var err error
			if out[i], err = a.storeOp(c, op, now, &read); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	if slices.ContainsFunc(ops, func(op agent.StoreOp) bool { return op.Put != nil }) {
		return write(ctx, a.engine, func(c Conn) ([]agent.StoreResult, error) {
			out, err := run(c)
			if err != nil {
				return nil, err
			}
			return out, touchItems(c, read, now)
		})
	}
	return a.readItems(ctx, run, &read, now)
}

// readItems is the way of batches that only read: they write if they have met items with a time to live to restart.
func (a *Agent) readItems(ctx context.Context, run func(Conn) ([]agent.StoreResult, error), met *[]itemKey, now time.Time) ([]agent.StoreResult, error) {
	out, err := read(ctx, a.engine, run)
	if err != nil || len(*met) == 0 {
		return out, err
	}
	return out, a.engine.Write(ctx, func(c Conn) error { return touchItems(c, *met, now) })
}

// itemKey is where an item stands.
type itemKey struct{ path, key string }

const touchItem = `
UPDATE items SET expires_at = CAST(? + ttl * 60000000 AS BIGINT) WHERE path = ? AND key = ? AND ttl IS NOT NULL AND expires_at > ?`

// touchItems restarts the time to live of items.
func touchItems(c Conn, keys []itemKey, now time.Time) error {
	for _, k := range keys {
		if _, err := c.Exec(touchItem, micros(now), k.path, k.key, micros(now)); err != nil {
			return err
		}
	}
	return nil
}

// DropItems removes expired items.
func (a *Agent) DropItems(ctx context.Context, now time.Time) error {
	return a.engine.Write(ctx, func(c Conn) error { return dropItems(c, now) })
}

func dropItems(c Conn, now time.Time) error {
	_, err := c.Exec(`DELETE FROM items WHERE expires_at <= ?`, micros(now))
	return err
}

func restarts(refresh *bool) bool { return refresh != nil && *refresh }

func (a *Agent) storeOp(c Conn, op agent.StoreOp, now time.Time, met *[]itemKey) (r agent.StoreResult, err error) {
	switch {
	case op.Get != nil:
		r.Item, err = getItem(c, *op.Get, now, met)
	case op.Put != nil:
		err = a.putItem(c, *op.Put, now)
	case op.Search != nil:
		r.Items, err = a.searchItems(c, *op.Search, now, met)
	case op.Namespaces != nil:
		r.Namespaces, err = a.listNamespaces(c, *op.Namespaces, now)
	default:
		err = slipway.Errorf(slipway.CodeInvalid, "a store operation is empty; set one of get, put, search, namespaces")
	}
	return r, err
}

const itemColumns = `namespace, key, value, created_at, updated_at, ttl IS NOT NULL`

// item is a stored item; mortal tells that it has a time to live.
type item struct {
	agent.Item
	mortal bool
}

func scanItem(s scanner) (i item, err error) {
	var namespace string
	var value secret
	var created, updated int64
	if err := s.Scan(&namespace, &i.Key, &value, &created, &updated, &i.mortal); err != nil {
		return i, err
	}
	i.Value, i.CreatedAt, i.UpdatedAt = json.RawMessage(value.String), fromMicros(created), fromMicros(updated)
	return i, json.Unmarshal([]byte(namespace), &i.Namespace)
}

const selectItem = `SELECT ` + itemColumns + ` FROM items WHERE path = ? AND key = ? AND (expires_at IS NULL OR expires_at > ?)`

func getItem(c Conn, op agent.GetOp, now time.Time, met *[]itemKey) (*agent.Item, error) {
	path := itemPath(op.Namespace)
	i, ok, err := one(c, scanItem, selectItem, path, op.Key, micros(now))
	if err != nil || !ok {
		return nil, err
	}
	if !op.Filter.AllowsItem(i.Namespace, i.Key, i.Value) {
		return nil, slipway.Errorf(slipway.CodeNotFound, "Item not found")
	}
	if i.mortal && restarts(op.RefreshTTL) {
		*met = append(*met, itemKey{path, op.Key})
	}
	return &i.Item, nil
}

const upsertItem = `
INSERT INTO items (path, key, namespace, value, created_at, updated_at, ttl, expires_at, fields, indexed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (path, key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at, ttl = excluded.ttl, expires_at = excluded.expires_at,
  fields = excluded.fields, indexed = excluded.indexed`

// putItem writes or deletes an item; expired ones go with any write.
func (a *Agent) putItem(c Conn, op agent.PutOp, now time.Time) error {
	if err := dropItems(c, now); err != nil {
		return err
	}
	if err := mayPut(c, op, now); err != nil {
		return err
	}
	path := itemPath(op.Namespace)
	if len(op.Value) == 0 || string(op.Value) == "null" {
		_, err := c.Exec(`DELETE FROM items WHERE path = ? AND key = ?`, path, op.Key)
		return err
	}
	var ttl, expires any
	if op.TTL != nil {
		life := agent.TTL{Minutes: *op.TTL}.From(now)
		ttl, expires = life.Minutes, micros(life.ExpiresAt)
	}
	namespace := op.Namespace
	if namespace == nil {
		namespace = []string{}
	}
	if _, err := c.Exec(upsertItem, path, op.Key, encode(namespace), hidden(string(op.Value)), micros(now), micros(now), ttl, expires, fieldsOf(op.Index), op.Indexed); err != nil {
		return err
	}
	return a.putVectors(c, itemKey{path, op.Key}, op.Vectors)
}

// mayPut refuses to change an item that the filter does not allow, or into one that it does not.
func mayPut(c Conn, op agent.PutOp, now time.Time) error {
	if op.Filter == nil {
		return nil
	}
	there, ok, err := one(c, scanItem, selectItem, itemPath(op.Namespace), op.Key, micros(now))
	if err != nil {
		return err
	}
	deleted := len(op.Value) == 0 || string(op.Value) == "null"
	if ok && !op.Filter.AllowsItem(there.Namespace, there.Key, there.Value) || !deleted && !op.Filter.AllowsItem(op.Namespace, op.Key, op.Value) {
		return slipway.Errorf(slipway.CodeForbidden, "Not authorized")
	}
	return nil
}

// below limits a list to the items under a prefix of whole labels that have not expired.
func below(prefix []string, now time.Time) *where {
	w := &where{}
	w.and("(expires_at IS NULL OR expires_at > ?)", micros(now))
	if path := itemPath(prefix); path != "" {
		w.and("path >= ? AND path < ?", path, strings.TrimSuffix(path, labelEnd)+"\x20")
	}
	return w
}

func (a *Agent) searchItems(c Conn, op agent.SearchOp, now time.Time, met *[]itemKey) ([]agent.Item, error) {
	w := below(op.Prefix, now)
	filter := object(op.Filter)
	if a.sealed() && (filter != "{}" || op.Access != nil) {
		return a.searchOpened(c, op, filter, w, met)
	}
	if filter != "{}" {
		w.and(a.dialect.Matches("value"), filter)
	}
	w.allow(a.dialect.AllowsItem(), op.Access)
	found, err := a.findItems(c, op, w)
	return shown(op, found, met), err
}

// searchOpened looks into sealed values once they have been opened.
func (a *Agent) searchOpened(c Conn, op agent.SearchOp, filter string, w *where, met *[]itemKey) ([]agent.Item, error) {
	all := op
	all.Limit, all.Offset = unbounded, 0
	found, err := a.findItems(c, all, w)
	found = slices.DeleteFunc(found, func(i item) bool {
		return filter != "{}" && !Matches(string(i.Value), filter) || !op.Access.AllowsItem(i.Namespace, i.Key, i.Value)
	})
	return shown(op, window(found, op.Limit, op.Offset), met), err
}

// shown shows items and notes those whose time to live a search restarts.
func shown(op agent.SearchOp, found []item, met *[]itemKey) []agent.Item {
	items := make([]agent.Item, 0, len(found))
	for _, i := range found {
		items = append(items, i.Item)
		if i.mortal && restarts(op.RefreshTTL) {
			*met = append(*met, itemKey{itemPath(i.Namespace), i.Key})
		}
	}
	return items
}

func (a *Agent) findItems(c Conn, op agent.SearchOp, w *where) ([]item, error) {
	if op.Vector != nil {
		return a.nearest(c, op, w)
	}
	tail, args := w.page(" ORDER BY updated_at DESC, path, key", op.Limit, op.Offset)
	return all(c, scanItem, `SELECT `+itemColumns+` FROM items`+tail, args...)
}

// listNamespaces lists the distinct namespaces that match, cut to the depth asked for, in order.
func (a *Agent) listNamespaces(c Conn, op agent.NamespacesOp, now time.Time) ([][]string, error) {
	literal := op.Prefix
	if i := slices.Index(literal, "*"); i >= 0 {
		literal = literal[:i]
	}
	w := below(literal, now)
	w.allow(a.dialect.AllowsItem(), op.Access)
	texts, err := all(c, scalar[string], `SELECT namespace FROM items`+w.text+` GROUP BY path, namespace ORDER BY path`, w.args...)
	if err != nil {
		return nil, err
	}
	out, seen := [][]string{}, map[string]bool{}
	for _, text := range texts {
		var ns []string
		if err := json.Unmarshal([]byte(text), &ns); err != nil {
			return nil, err
		}
		if !under(ns, op.Prefix, op.Suffix) {
			continue
		}
		if op.MaxDepth > 0 && len(ns) > op.MaxDepth {
			ns = ns[:op.MaxDepth]
		}
		if path := itemPath(ns); !seen[path] {
			seen[path] = true
			out = append(out, ns)
		}
	}
	return window(out, op.Limit, op.Offset), nil
}

func under(ns, prefix, suffix []string) bool {
	if len(ns) < len(prefix) || len(ns) < len(suffix) {
		return false
	}
	return labels(ns[:len(prefix)], prefix) && labels(ns[len(ns)-len(suffix):], suffix)
}

func labels(ns, pattern []string) bool {
	for i, want := range pattern {
		if want != "*" && want != ns[i] {
			return false
		}
	}
	return true
}

func window[T any](list []T, limit, offset int) []T {
	list = list[min(max(offset, 0), len(list)):]
	if limit > 0 && limit < len(list) {
		list = list[:limit]
	}
	return list
}
