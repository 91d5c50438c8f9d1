package storetest

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/agent"
)

// vectorStore is a store with an index of two dimensions.
type vectorStore struct {
	t     *testing.T
	s     agent.Store
	index string
}

// put stores an item with vectors at angles to the first axis; none = an item without.
func (v vectorStore) put(ns, key, value string, at time.Time, degrees ...float64) {
	v.t.Helper()
	op := &agent.PutOp{Namespace: strings.Split(ns, "."), Key: key, Value: raw(value), Indexed: v.index}
	for i, d := range degrees {
		op.Vectors = append(op.Vectors, agent.ItemVector{Field: fmt.Sprint("f", i), Vector: angle(d)})
	}
	_, err := v.s.StoreBatch(context.Background(), []agent.StoreOp{{Put: op}}, at)
	must(v.t, err)
}

func angle(degrees float64) []float32 {
	return []float32{float32(math.Cos(degrees * math.Pi / 180)), float32(math.Sin(degrees * math.Pi / 180))}
}

// search looks along the first axis and returns keys with their scores in hundredths.
func (v vectorStore) search(op agent.SearchOp, at time.Time) string {
	v.t.Helper()
	op.Vector, op.Indexed = angle(0), v.index
	out, err := v.s.StoreBatch(context.Background(), []agent.StoreOp{{Search: &op}}, at)
	must(v.t, err)
	var b strings.Builder
	for _, i := range out[0].Items {
		b.WriteString(i.Key)
		if i.Score != nil {
			fmt.Fprintf(&b, "=%d", int(math.Round(*i.Score*100)))
		}
		b.WriteString(" ")
	}
	return b.String()
}

// vectors: the best path of an item counts, items without vectors fill the rest, filters and pages hold.
func vectors(t *testing.T, s agent.Store) {
	start := startTime()
	v := vectorStore{t, s, "one"}
	v.put("a", "right", `{"n":1}`, start, 90)
	v.put("a", "near", `{"n":2}`, start, 120, 10)
	v.put("a", "back", `{"n":3}`, start, 180)
	v.put("a.b", "same", `{"n":4}`, start, 0)
	v.put("ab", "else", `{"n":5}`, start, 0)
	v.put("a", "old", `{"n":6}`, start)
	v.put("a", "new", `{"n":7}`, start.Add(time.Second))
	now := start.Add(time.Minute)
	below := agent.SearchOp{Prefix: []string{"a"}, Limit: 10}
	equal(t, "ranked", v.search(below, now), "same=100 near=98 right=0 back=-100 new old ")
	page := agent.SearchOp{Prefix: []string{"a"}, Limit: 2, Offset: 3}
	equal(t, "a page over the border", v.search(page, now), "back=-100 new ")
	page.Offset = 10
	equal(t, "behind the last", v.search(page, now), "")
	filtered := agent.SearchOp{Prefix: []string{"a"}, Filter: raw(`{"n":{"$gte":2,"$lt":7}}`), Limit: 3}
	equal(t, "filtered", v.search(filtered, now), "same=100 near=98 back=-100 ")
	equal(t, "everywhere", v.search(agent.SearchOp{Limit: 2}, now), "same=100 else=100 ")

	v.put("a", "near", `{"n":2}`, now)
	v.put("a.b", "same", `null`, now)
	equal(t, "put again without, deleted", v.search(agent.SearchOp{Prefix: []string{"a"}, Limit: 3}, now), "right=0 back=-100 near ")
	other := vectorStore{t, s, "two"}
	equal(t, "another index", other.search(agent.SearchOp{Prefix: []string{"a"}, Limit: 2}, now), "near new ")
	mortal := 1.0
	_, err := s.StoreBatch(context.Background(), []agent.StoreOp{{Put: &agent.PutOp{
		Namespace: []string{"m"}, Key: "k", Value: raw(`{}`), TTL: &mortal, Indexed: "one", Vectors: []agent.ItemVector{{Field: "$", Vector: angle(0)}},
	}}}, now)
	must(t, err)
	yes := true
	refreshing := agent.SearchOp{Prefix: []string{"m"}, Limit: 1, RefreshTTL: &yes}
	equal(t, "restarted by a search", v.search(refreshing, now.Add(50*time.Second)), "k=100 ")
	equal(t, "lives", v.search(agent.SearchOp{Prefix: []string{"m"}, Limit: 1}, now.Add(100*time.Second)), "k=100 ")
	equal(t, "expired", v.search(agent.SearchOp{Prefix: []string{"m"}, Limit: 1}, now.Add(200*time.Second)), "")
}

// reindexing: items without vectors for the index are found a page at a time; what changed meanwhile is left alone.
func reindexing(t *testing.T, s agent.Store) {
	ctx, now := context.Background(), startTime()
	v := vectorStore{t, s, "one"}
	for i := range 5 {
		v.put("n", fmt.Sprint(i), fmt.Sprintf(`{"text":"t%d"}`, i), now, 45)
	}
	_, err := s.StoreBatch(ctx, []agent.StoreOp{{Put: &agent.PutOp{Namespace: []string{"n"}, Key: "never", Value: raw(`{}`), Index: raw(`false`)}}}, now)
	must(t, err)
	_, err = s.StoreBatch(ctx, []agent.StoreOp{{Put: &agent.PutOp{Namespace: []string{"n"}, Key: "own", Value: raw(`{}`), Index: raw(`["a"]`)}}}, now)
	must(t, err)
	var found []agent.Unindexed
	for page, err := s.Unindexed(ctx, "two", nil, 2, now); len(page) > 0; page, err = s.Unindexed(ctx, "two", &found[len(found)-1], 2, now) {
		must(t, err)
		found = append(found, page...)
	}
	equal(t, "found", len(found), 6)
	equal(t, "its paths", string(found[5].Fields), `["a"]`)
	for i := range found {
		found[i].Vectors = []agent.ItemVector{{Field: "$", Vector: angle(0)}}
	}
	v.put("n", "1", `{"text":"changed"}`, now, 90)
	must(t, s.IndexItems(ctx, "two", found))
	two := vectorStore{t, s, "two"}
	equal(t, "indexed anew", two.search(agent.SearchOp{Prefix: []string{"n"}, Filter: raw(`{"text":"t3"}`), Limit: 1}, now), "3=100 ")
	equal(t, "not what changed", two.search(agent.SearchOp{Prefix: []string{"n"}, Filter: raw(`{"text":"changed"}`), Limit: 1}, now), "1 ")
	left, err := s.Unindexed(ctx, "two", nil, 0, now)
	must(t, err)
	equal(t, "left", len(left), 1)
}
