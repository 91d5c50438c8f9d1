package slipway_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slipway-dev/slipway"
)

// shelfWorld is a shelf with what records hold on to, and a limit.
type shelfWorld struct {
	items []slipway.Shelved
	held  slipway.Holdings
	terms slipway.CollectionTerms
}

var shelfEpoch = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func genShelfWorld(t *rapid.T) shelfWorld {
	minute := rapid.Custom(func(t *rapid.T) time.Time {
		return shelfEpoch.Add(time.Duration(rapid.IntRange(0, 12).Draw(t, "minute")) * time.Minute)
	})
	size := rapid.Int64Range(0, 9)
	w := shelfWorld{held: slipway.Holdings{Needed: map[string]string{}, Known: map[string]bool{}, Idle: map[string]string{}}}
	var shared []string
	for kind, most := range map[slipway.ShelfKind]int{slipway.ShelfLayer: 4, slipway.ShelfTool: 2, slipway.ShelfCache: 2} {
		for i := range rapid.IntRange(0, most).Draw(t, string(kind)) {
			item := slipway.Shelved{Path: fmt.Sprintf("%s/%d", kind, i), Kind: kind, Size: size.Draw(t, "size"), UsedAt: minute.Draw(t, "used")}
			w.items = append(w.items, item)
			if kind != slipway.ShelfCache {
				shared = append(shared, item.Path)
			}
		}
	}
	slices.Sort(shared)
	for _, kind := range []slipway.ShelfKind{slipway.ShelfBundle, slipway.ShelfBlob} {
		for i := range rapid.IntRange(0, 6).Draw(t, string(kind)) {
			item := slipway.Shelved{Path: fmt.Sprintf("%s/%d", kind, i), Kind: kind, Size: size.Draw(t, "size"), UsedAt: minute.Draw(t, "used")}
			if kind == slipway.ShelfBundle && len(shared) > 0 {
				item.Needs = slices.Compact(slices.Sorted(slices.Values(rapid.SliceOfN(rapid.SampledFrom(shared), 0, 3).Draw(t, "needs"))))
			}
			if item.NeedsUnknown = kind == slipway.ShelfBundle && rapid.IntRange(0, 9).Draw(t, "unknown") == 0; item.NeedsUnknown {
				item.Needs = nil
			}
			switch rapid.SampledFrom([]string{"needed", "known", "idle", "unknown"}).Draw(t, "records") {
			case "needed":
				w.held.Needed[item.Path], w.held.Known[item.Path] = "a revision needs it", true
			case "known":
				w.held.Known[item.Path] = true
			case "idle":
				w.held.Known[item.Path], w.held.Idle[item.Path] = true, "nobody used it"
			}
			w.items = append(w.items, item)
		}
	}
	w.items = rapid.Permutation(w.items).Draw(t, "order")
	w.terms = slipway.CollectionTerms{
		Limit: rapid.Int64Range(0, 40).Draw(t, "limit"), All: rapid.IntRange(0, 5).Draw(t, "all") == 0,
		Since: minute.Draw(t, "since"), Idle: minute.Draw(t, "idle"),
	}
	return w
}

// reachable says, in other words than the code under test, what must stay: roots, and what they lead to.
func (w shelfWorld) reachable(since time.Time) map[string]bool {
	out := map[string]bool{}
	for _, root := range w.items {
		if w.held.Needed[root.Path] == "" && root.UsedAt.Before(since) {
			continue
		}
		out[root.Path] = true
		for _, other := range w.items {
			part := other.Kind == slipway.ShelfLayer || other.Kind == slipway.ShelfTool
			if part && (root.NeedsUnknown || slices.Contains(root.Needs, other.Path)) {
				out[other.Path] = true
			}
		}
	}
	return out
}

// lastUse counts uses of a bundle as uses of its parts.
func (w shelfWorld) lastUse(item slipway.Shelved) time.Time {
	at := item.UsedAt
	for _, b := range w.items {
		part := item.Kind == slipway.ShelfLayer || item.Kind == slipway.ShelfTool
		if part && (b.NeedsUnknown || slices.Contains(b.Needs, item.Path)) && b.UsedAt.After(at) {
			at = b.UsedAt
		}
	}
	return at
}

func (w shelfWorld) without(gone []slipway.Removal) shelfWorld {
	w.items = slices.DeleteFunc(slices.Clone(w.items), func(item slipway.Shelved) bool {
		return slices.ContainsFunc(gone, func(r slipway.Removal) bool { return r.Path == item.Path })
	})
	return w
}

func sizes(items []slipway.Shelved) (sum int64) {
	for _, item := range items {
		sum += item.Size
	}
	return sum
}

// TestCollectKeepsWhatIsReachable holds collections of arbitrary shelves against the rules.
func TestCollectKeepsWhatIsReachable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := genShelfWorld(t)
		got := slipway.Collect(w.items, w.held, w.terms)
		stay, left := w.reachable(w.terms.Since), w.without(got.Removals)
		gone := map[string]bool{}
		for _, r := range got.Removals {
			if stay[r.Path] {
				t.Errorf("%s goes (%s) although it is needed", r.Path, r.Why)
			}
			if gone[r.Path] || r.Why == "" {
				t.Errorf("%s goes twice, or without a reason: %q", r.Path, r.Why)
			}
			if r.Why == w.held.Idle[r.Path] && !r.UsedAt.Before(w.terms.Idle) {
				t.Errorf("%s goes as idle although it was used at %s", r.Path, r.UsedAt)
			}
			gone[r.Path] = true
		}
		// Nothing that stays lacks a part that went, unless the records have given that bundle up.
		for _, item := range left.items {
			for _, part := range item.Needs {
				if gone[part] {
					t.Errorf("%s stays without %s", item.Path, part)
				}
			}
			useless := (item.Kind == slipway.ShelfBundle || item.Kind == slipway.ShelfBlob) && !w.held.Known[item.Path]
			idle := w.held.Idle[item.Path] != "" && item.UsedAt.Before(w.terms.Idle)
			if !stay[item.Path] && (useless || idle || w.terms.All) {
				t.Errorf("%s stays: useless %v, idle %v, all %v", item.Path, useless, idle, w.terms.All)
			}
		}
		// The limit is kept, or nothing is left to remove.
		kept := sizes(left.items)
		if w.terms.Limit > 0 && kept > w.terms.Limit && slices.ContainsFunc(left.items, func(item slipway.Shelved) bool { return !stay[item.Path] }) {
			t.Errorf("%d stay, the limit is %d, and some of it could go", kept, w.terms.Limit)
		}
		w.checkOrder(t, got, stay)
		if got.Kept != kept || got.Freed != sizes(w.items)-kept {
			t.Errorf("kept %d, freed %d; want %d, %d", got.Kept, got.Freed, kept, sizes(w.items)-kept)
		}
		var needed, held int64
		heldOnly := w.reachable(shelfEpoch.AddDate(1, 0, 0))
		for _, item := range w.items {
			if stay[item.Path] {
				needed += item.Size
			}
			if heldOnly[item.Path] {
				held += item.Size
			}
		}
		if got.Needed != needed || got.Held != held || slipway.HeldBytes(w.items, w.held) != held {
			t.Errorf("needed %d, held %d; want %d, %d", got.Needed, got.Held, needed, held)
		}
		if again := slipway.Collect(left.items, w.held, w.terms); len(again.Removals) > 0 || again.Kept != got.Kept {
			t.Errorf("a second collection removes %v", again.Removals)
		}
	})
}

// checkOrder checks that what goes for want of room goes in the order of its last use, no further than it must.
func (w shelfWorld) checkOrder(t *rapid.T, got slipway.Collection, stay map[string]bool) {
	if w.terms.All {
		return
	}
	room := slices.DeleteFunc(slices.Clone(got.Removals), func(r slipway.Removal) bool { return !strings.Contains(r.Why, "limit") })
	left := w.without(got.Removals)
	for i, r := range room {
		if i > 0 && w.lastUse(room[i-1].Shelved).After(w.lastUse(r.Shelved)) {
			t.Errorf("%s goes before %s, which was used earlier", room[i-1].Path, r.Path)
		}
		for _, item := range left.items {
			if !stay[item.Path] && w.lastUse(item).Before(w.lastUse(r.Shelved)) {
				t.Errorf("%s goes, and %s, which was used earlier, stays", r.Path, item.Path)
			}
		}
	}
	if n := len(room); n > 0 && sizes(left.items)+room[n-1].Size <= w.terms.Limit {
		t.Errorf("%s goes although there was room for it", room[n-1].Path)
	}
	if w.terms.Limit == 0 && len(room) > 0 {
		t.Errorf("%v goes without a limit", room)
	}
}

// TestCollectDoesNotDependOnTheOrderOfTheShelf: two looks at one shelf come to the same.
func TestCollectDoesNotDependOnTheOrderOfTheShelf(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := genShelfWorld(t)
		names := func(items []slipway.Shelved) []string {
			var out []string
			for _, r := range slipway.Collect(items, w.held, w.terms).Removals {
				out = append(out, r.Path)
			}
			slices.Sort(out)
			return out
		}
		sorted := slices.SortedFunc(slices.Values(w.items), func(a, b slipway.Shelved) int { return cmp.Compare(a.Path, b.Path) })
		if a, b := names(w.items), names(sorted); !slices.Equal(a, b) {
			t.Errorf("%q in one order, %q in another", a, b)
		}
	})
}

func TestCollectSaysWhy(t *testing.T) {
	t.Parallel()
	day := func(n int) time.Time { return shelfEpoch.AddDate(0, 0, n) }
	items := []slipway.Shelved{
		{Path: "bundles/active", Kind: slipway.ShelfBundle, Size: 10, UsedAt: day(1), Needs: []string{"layers/shared"}},
		{Path: "bundles/old", Kind: slipway.ShelfBundle, Size: 10, UsedAt: day(2), Needs: []string{"layers/shared", "layers/own"}},
		{Path: "bundles/stray", Kind: slipway.ShelfBundle, Size: 10, UsedAt: day(9)},
		{Path: "layers/shared", Kind: slipway.ShelfLayer, Size: 100, UsedAt: day(0)},
		{Path: "layers/own", Kind: slipway.ShelfLayer, Size: 100, UsedAt: day(0)},
		{Path: "cache/npm", Kind: slipway.ShelfCache, Size: 50, UsedAt: day(3)},
		{Path: "blobs/forgotten", Kind: slipway.ShelfBlob, Size: 5, UsedAt: day(3)},
		{Path: "blobs/young", Kind: slipway.ShelfBlob, Size: 5, UsedAt: day(5)},
		{Path: "blobs/building", Kind: slipway.ShelfBlob, Size: 5, UsedAt: day(10)},
	}
	held := slipway.Holdings{
		Needed: map[string]string{"bundles/active": "it runs"},
		Known:  map[string]bool{"bundles/active": true, "bundles/old": true, "blobs/forgotten": true, "blobs/young": true},
		Idle:   map[string]string{"blobs/forgotten": "never used", "blobs/young": "never used"},
	}
	got := slipway.Collect(items, held, slipway.CollectionTerms{Since: day(10), Idle: day(4), Limit: 160})
	var lines []string
	for _, r := range got.Removals {
		lines = append(lines, r.Path+": "+r.Why)
	}
	const spare = "no running or redeployable revision needs it, and it is the longest unused while the limit is exceeded"
	want := []string{
		"bundles/stray: nothing refers to it any more", "blobs/forgotten: never used",
		"bundles/old: " + spare, "layers/own: " + spare, "cache/npm: " + spare,
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if got.Held != 110 || got.Needed != 115 || got.Kept != 120 || got.Freed != 175 {
		t.Errorf("held %d, needed %d, kept %d, freed %d", got.Held, got.Needed, got.Kept, got.Freed)
	}
}
