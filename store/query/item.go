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
	run := func(c Conn) ([]agent.StoreResult, error) {
		out := make([]agent.StoreResult, len(ops))
		for i, op := range ops {
			var err error
			if out[i], err = a.storeOp(c, op, now); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	if slices.ContainsFunc(ops, changes) {
		return write(ctx, a.engine, run)
	}
	return read(ctx, a.engine, run)
}

// changes says whether an operation may write: reads do when they restart an item's time to live.
func changes(op agent.StoreOp) bool {
	return op.Put != nil || op.Get != nil && restarts(op.Get.RefreshTTL) || op.Search != nil && restarts(op.Search.RefreshTTL)
}

func restarts(refresh *bool) bool { return refresh != nil && *refresh }

func (a *Agent) storeOp(c Conn, op agent.StoreOp, now time.Time) (r agent.StoreResult, err error) {
	switch {
	case op.Get != nil:
		r.Item, err = getItem(c, *op.Get, now)
	case op.Put != nil:
		err = putItem(c, *op.Put, now)
	case op.Search != nil:
		r.Items, err = a.searchItems(c, *op.Search, now)
	case op.Namespaces != nil:
		r.Namespaces, err = listNamespaces(c, *op.Namespaces, now)
	default:
		err = slipway.Errorf(slipway.CodeInvalid, "a store operation is empty; set one of get, put, search, namespaces")
	}
	return r, err
}

const itemColumns = `namespace, key, value, created_at, updated_at`

func scanItem(s scanner) (i agent.Item, err error) {
	var namespace, value string
	var created, updated int64
	if err := s.Scan(&namespace, &i.Key, &value, &created, &updated); err != nil {
		return i, err
	}
	i.Value, i.CreatedAt, i.UpdatedAt = json.RawMessage(value), fromMicros(created), fromMicros(updated)
	return i, json.Unmarshal([]byte(namespace), &i.Namespace)
}

const (
	selectItem = `SELECT ` + itemColumns + ` FROM items WHERE path = ? AND key = ? AND (expires_at IS NULL OR expires_at > ?)`
	touchItem  = `UPDATE items SET expires_at = ? + CAST(ttl * 60000000 AS INTEGER) WHERE path = ? AND key = ? AND ttl IS NOT NULL`
)

func getItem(c Conn, op agent.GetOp, now time.Time) (*agent.Item, error) {
	path := itemPath(op.Namespace)
	i, ok, err := one(c, scanItem, selectItem, path, op.Key, micros(now))
	if err != nil || !ok {
		return nil, err
	}
	if restarts(op.RefreshTTL) {
		_, err = c.Exec(touchItem, micros(now), path, op.Key)
	}
	return &i, err
}

const upsertItem = `
INSERT INTO items (path, key, namespace, value, created_at, updated_at, ttl, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (path, key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at, ttl = excluded.ttl, expires_at = excluded.expires_at`

// putItem writes or deletes an item; expired ones go with any write.
func putItem(c Conn, op agent.PutOp, now time.Time) error {
	if _, err := c.Exec(`DELETE FROM items WHERE expires_at <= ?`, micros(now)); err != nil {
		return err
	}
	path := itemPath(op.Namespace)
	if len(op.Value) == 0 || string(op.Value) == "null" {
		_, err := c.Exec(`DELETE FROM items WHERE path = ? AND key = ?`, path, op.Key)
		return err
	}
	var ttl, expires any
	if op.TTL != nil {
		ttl, expires = *op.TTL, micros(now.Add(time.Duration(*op.TTL*float64(time.Minute))))
	}
	namespace := op.Namespace
	if namespace == nil {
		namespace = []string{}
	}
	_, err := c.Exec(upsertItem, path, op.Key, encode(namespace), string(op.Value), micros(now), micros(now), ttl, expires)
	return err
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

func (a *Agent) searchItems(c Conn, op agent.SearchOp, now time.Time) ([]agent.Item, error) {
	w := below(op.Prefix, now)
	if f := object(op.Filter); f != "{}" {
		w.and(a.dialect.Matches("value"), f)
	}
	tail, args := w.page(" ORDER BY updated_at DESC, path, key", op.Limit, op.Offset)
	items, err := all(c, scanItem, `SELECT `+itemColumns+` FROM items`+tail, args...)
	if err != nil || !restarts(op.RefreshTTL) {
		return items, err
	}
	for _, i := range items {
		if _, err := c.Exec(touchItem, micros(now), itemPath(i.Namespace), i.Key); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// listNamespaces lists the distinct namespaces that match, cut to the depth asked for, in order.
func listNamespaces(c Conn, op agent.NamespacesOp, now time.Time) ([][]string, error) {
	literal := op.Prefix
	if i := slices.Index(literal, "*"); i >= 0 {
		literal = literal[:i]
	}
	w := below(literal, now)
	texts, err := all(c, scalar[string], `SELECT DISTINCT namespace FROM items`+w.text+` ORDER BY path`, w.args...)
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
