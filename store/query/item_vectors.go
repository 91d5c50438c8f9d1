package query

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/agent"
)

// fieldsOf is how the paths that a put named are stored.
func fieldsOf(index json.RawMessage) string {
	if len(index) == 0 {
		return "null"
	}
	return string(index)
}

const dropVectors = `DELETE FROM vectors WHERE path = ? AND key = ?`

// putVectors replaces the vectors of an item.
func (a *Agent) putVectors(c Conn, k itemKey, vectors []agent.ItemVector) error {
	if err := c.Send(dropVectors, k.path, k.key); err != nil {
		return err
	}
	for _, v := range vectors {
		insert := `INSERT INTO vectors (path, key, field, vector) VALUES (?, ?, ?, ` + a.dialect.StoredVector() + `) ON CONFLICT DO NOTHING`
		if err := c.Send(insert, k.path, k.key, v.Field, a.dialect.Vector(v.Vector)); err != nil {
			return err
		}
	}
	return nil
}

// The order of a search by likeness: the best vector of an item counts, items without vectors come last.
const byLikeness = ` ORDER BY score DESC NULLS LAST, changed DESC, path, key`

// nearest lists the items that satisfy w by their likeness to a vector.
func (a *Agent) nearest(c Conn, op agent.SearchOp, w *where) ([]item, error) {
	if product := a.dialect.Likeness("v.vector"); product != "" {
		return a.nearestThere(c, op, w, product)
	}
	return a.nearestHere(c, op, w)
}

// joined pairs the items that satisfy w with those of their vectors that were made for an index.
func joined(w *where) string {
	return `
FROM (SELECT path, key, updated_at AS changed, indexed FROM items` + w.text + `) AS i
LEFT JOIN vectors AS v ON v.path = i.path AND v.key = i.key AND i.indexed = ?`
}

// nearestThere lets the database multiply.
func (a *Agent) nearestThere(c Conn, op agent.SearchOp, w *where, product string) ([]item, error) {
	query := `
WITH ranked AS (SELECT i.path, i.key, i.changed, max(` + product + `) AS score` + joined(w) + `
GROUP BY i.path, i.key, i.changed ORDER BY score DESC NULLS LAST, i.changed DESC, i.path, i.key LIMIT ? OFFSET ?)
SELECT ` + itemColumns + `, score FROM ranked JOIN items USING (path, key)` + byLikeness
	args := append([]any{a.dialect.Vector(op.Vector)}, w.args...)
	return all(c, scanScored, query, append(args, op.Indexed, limitOf(op.Limit), op.Offset)...)
}

func limitOf(limit int) int {
	if limit <= 0 {
		return unbounded
	}
	return limit
}

func scanScored(s scanner) (i item, err error) {
	var score *float64
	i, err = scanItem(with{s, &score})
	i.Score = score
	return i, err
}

// likeness is how like an item is to what is searched for.
type likeness struct {
	itemKey
	changed int64
	score   *float64
}

// nearestHere multiplies in this process: every vector travels, one at a time.
func (a *Agent) nearestHere(c Conn, op agent.SearchOp, w *where) ([]item, error) {
	ranked, err := a.rank(c, op, w)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(ranked, byScore)
	ranked = window(ranked, op.Limit, op.Offset)
	if len(ranked) == 0 {
		return nil, nil
	}
	found, err := itemsAt(c, ranked)
	if err != nil {
		return nil, err
	}
	items := make([]item, 0, len(ranked))
	for _, r := range ranked {
		i, ok := found[r.itemKey]
		if ok {
			i.Score = r.score
			items = append(items, i)
		}
	}
	return items, nil
}

func (a *Agent) rank(c Conn, op agent.SearchOp, w *where) ([]likeness, error) {
	query := `SELECT i.path, i.key, i.changed, ` + a.dialect.VectorBytes("v.vector") + joined(w) + ` ORDER BY i.path, i.key`
	rows, err := c.Query(query, append(slices.Clone(w.args), op.Indexed)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ranked []likeness
	for rows.Next() {
		var l likeness
		var vector []byte
		if err := rows.Scan(&l.path, &l.key, &l.changed, &vector); err != nil {
			return nil, err
		}
		if vector != nil {
			score := a.dialect.Multiply(vector, op.Vector)
			l.score = &score
		}
		if n := len(ranked); n == 0 || ranked[n-1].itemKey != l.itemKey {
			ranked = append(ranked, l)
		} else if *l.score > *ranked[n-1].score {
			ranked[n-1].score = l.score
		}
	}
	return ranked, rows.Err()
}

// byScore is byLikeness in Go.
func byScore(x, y likeness) int {
	switch {
	case x.score == nil && y.score != nil:
		return 1
	case x.score != nil && y.score == nil:
		return -1
	case x.score != nil && *x.score != *y.score:
		return cmp.Compare(*y.score, *x.score)
	}
	return cmp.Or(cmp.Compare(y.changed, x.changed), strings.Compare(x.path, y.path), strings.Compare(x.key, y.key))
}

// itemsAt reads items by their places.
func itemsAt(c Conn, places []likeness) (map[itemKey]item, error) {
	w := &where{}
	marks, args := make([]string, len(places)), make([]any, 0, 2*len(places))
	for i, p := range places {
		marks[i] = "(?, ?)"
		args = append(args, p.path, p.key)
	}
	w.and("(path, key) IN (VALUES "+strings.Join(marks, ", ")+")", args...)
	list, err := all(c, scanItem, `SELECT `+itemColumns+` FROM items`+w.text, w.args...)
	if err != nil {
		return nil, err
	}
	found := make(map[itemKey]item, len(list))
	for _, i := range list {
		found[itemKey{itemPath(i.Namespace), i.Key}] = i
	}
	return found, nil
}

const selectUnindexed = `
SELECT namespace, key, value, fields FROM items
WHERE indexed <> ? AND fields <> 'false' AND (path, key) > (?, ?) AND (expires_at IS NULL OR expires_at > ?) ORDER BY path, key LIMIT ?`

// Unindexed returns items that have no vectors for an index though they should.
func (a *Agent) Unindexed(ctx context.Context, index string, behind *agent.Unindexed, limit int, now time.Time) ([]agent.Unindexed, error) {
	var after itemKey
	if behind != nil {
		after = itemKey{itemPath(behind.Namespace), behind.Key}
	}
	scan := func(s scanner) (u agent.Unindexed, err error) {
		var namespace, fields string
		var value secret
		if err := s.Scan(&namespace, &u.Key, &value, &fields); err != nil {
			return u, err
		}
		u.Value, u.Fields = json.RawMessage(value.String), json.RawMessage(fields)
		return u, json.Unmarshal([]byte(namespace), &u.Namespace)
	}
	return read(ctx, a.engine, func(c Conn) ([]agent.Unindexed, error) {
		return all(c, scan, selectUnindexed, index, after.path, after.key, micros(now), limitOf(limit))
	})
}

const (
	storedValue = `SELECT value FROM items WHERE path = ? AND key = ?`
	markIndexed = `UPDATE items SET indexed = ? WHERE path = ? AND key = ? AND fields = ?`
)

// unchanged says whether an item still has the value that its vectors were made from; a sealed one is opened for that.
func unchanged(c Conn, k itemKey, value json.RawMessage) (bool, error) {
	stored, ok, err := one(c, func(s scanner) (v secret, err error) { return v, s.Scan(&v) }, storedValue, k.path, k.key)
	return ok && stored.String == string(value), err
}

// IndexItems stores the vectors of items that have not changed.
func (a *Agent) IndexItems(ctx context.Context, index string, items []agent.Unindexed) error {
	return a.engine.Write(ctx, func(c Conn) error {
		for _, i := range items {
			k := itemKey{itemPath(i.Namespace), i.Key}
			if same, err := unchanged(c, k, i.Value); err != nil || !same {
				if err != nil {
					return err
				}
				continue
			}
			n, err := c.Exec(markIndexed, index, k.path, k.key, fieldsOf(i.Fields))
			if err != nil {
				return err
			}
			if n == 0 {
				continue
			}
			if err := a.putVectors(c, k, i.Vectors); err != nil {
				return err
			}
		}
		return nil
	})
}
