package slipway

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// ShelfKind says what something on a shelf is; it is the directory it lies in.
type ShelfKind string

// The kinds.
const (
	ShelfBundle ShelfKind = "bundles"
	ShelfLayer  ShelfKind = "layers"
	ShelfTool   ShelfKind = "tools"
	ShelfCache  ShelfKind = "cache" // what installers downloaded; it grows
	ShelfBlob   ShelfKind = "blobs" // uploaded sources, and archives of artifacts
)

// Shelved is one thing that builds left on a machine.
type Shelved struct {
	Path   string // relative to the data directory: "layers/node-…"; of a blob "blobs/sha256:…"
	Kind   ShelfKind
	Size   int64     // of the disk it takes, in bytes
	UsedAt time.Time // by a build, the last time
	// Needs are the paths of what a bundle shares with others; NeedsUnknown says that it may be any of them.
	Needs        []string
	NeedsUnknown bool
}

// Shelf is the disk on which builds leave things.
type Shelf interface {
	// List returns all there is of the given kinds, of every kind if none is given.
	List(ctx context.Context, kinds ...ShelfKind) ([]Shelved, error)
	// Remove removes a thing unless it was used after before, and says whether it is gone. It is safe beside builds.
	Remove(ctx context.Context, path string, before time.Time) (bool, error)
}

// CollectionTerms say what is kept.
type CollectionTerms struct {
	// Keep is how many of the newest revisions of each deployment can be redeployed whatever happens to their source.
	Keep int
	// Limit bounds what lies on the disk, in bytes; 0 = no bound. What is needed is never removed, so it may be exceeded.
	Limit int64
	// Since protects what was used at this time or later: a running build may need it.
	Since time.Time
	// Idle is since when an archive of Holdings.Idle must not have been used to go although there is room.
	Idle time.Time
	// All removes everything that is not needed, also while there is room.
	All bool
}

// Holdings say what the records hold on to.
type Holdings struct {
	Needed map[string]string // path to why it must stay
	Known  map[string]bool   // paths that records name; an unknown bundle or blob is of no use to anybody
	Idle   map[string]string // path of an archive that no blueprint needs, to why it may go once it was idle for long
}

// Removal is one thing that is to go.
type Removal struct {
	Shelved
	Why string
}

// Collection is what a look at a shelf came to.
type Collection struct {
	Removals []Removal // in the order to remove them
	Kept     int64     // bytes that stay
	Freed    int64     // bytes that go
	Needed   int64     // of the bytes that stay, those that must
	Held     int64     // of the needed bytes, those that records hold on to; the rest only running builds may need
}

// Collect decides what goes: whatever nobody can ask for any more, and archives that were idle for long; then, until the rest
// is within the limit, what is not needed, the longest unused first. What holdings need, what a needed bundle shares with
// others, and what was used since terms.Since stay whatever the limit is.
func Collect(items []Shelved, held Holdings, terms CollectionTerms) Collection {
	needed := required(items, held, terms.Since)
	out := Collection{Held: HeldBytes(items, held)}
	var spare []Shelved
	for _, item := range items {
		switch why := held.useless(item, terms); {
		case needed[item.Path]:
			out.Needed += item.Size
			out.Kept += item.Size
		case why != "":
			out.Removals = append(out.Removals, Removal{item, why})
			out.Freed += item.Size
		default:
			spare = append(spare, item)
			out.Kept += item.Size
		}
	}
	used := lastUses(items)
	slices.SortStableFunc(spare, func(a, b Shelved) int {
		return cmp.Or(used(a).Compare(used(b)), -cmp.Compare(bundleFirst(a), bundleFirst(b)), cmp.Compare(a.Path, b.Path))
	})
	for _, item := range spare {
		why := "no running or redeployable revision needs it"
		if !terms.All {
			if terms.Limit == 0 || out.Kept <= terms.Limit {
				break
			}
			why += ", and it is the longest unused while the limit is exceeded"
		}
		out.Removals = append(out.Removals, Removal{item, why})
		out.Kept -= item.Size
		out.Freed += item.Size
	}
	return out
}

// HeldBytes adds up what the records hold on to: it cannot be removed whatever the limit is.
func HeldBytes(items []Shelved, held Holdings) (sum int64) {
	needed := required(items, held, time.Time{})
	for _, item := range items {
		if needed[item.Path] {
			sum += item.Size
		}
	}
	return sum
}

// useless says why a thing that is not needed goes although there is room; "" = it stays for now.
func (h Holdings) useless(item Shelved, terms CollectionTerms) string {
	switch {
	case (item.Kind == ShelfBundle || item.Kind == ShelfBlob) && !h.Known[item.Path]:
		return "nothing refers to it any more"
	case item.UsedAt.Before(terms.Idle):
		return h.Idle[item.Path]
	}
	return ""
}

func bundleFirst(item Shelved) int {
	if item.Kind == ShelfBundle {
		return 1
	}
	return 0
}

// lastUses counts the use of a bundle as one of what it needs: no bundle that stays may lack a part that went.
func lastUses(items []Shelved) func(Shelved) time.Time {
	last, anything := map[string]time.Time{}, time.Time{}
	for _, item := range items {
		for _, p := range item.Needs {
			if item.UsedAt.After(last[p]) {
				last[p] = item.UsedAt
			}
		}
		if item.NeedsUnknown && item.UsedAt.After(anything) {
			anything = item.UsedAt
		}
	}
	return func(item Shelved) time.Time {
		at := item.UsedAt
		if item.Kind != ShelfLayer && item.Kind != ShelfTool {
			return at
		}
		for _, other := range []time.Time{last[item.Path], anything} {
			if other.After(at) {
				at = other
			}
		}
		return at
	}
}

// required lists the paths that must stay; since is from when on a use may be that of a running build, zero = there is none.
func required(items []Shelved, held Holdings, since time.Time) map[string]bool {
	needed, everything := map[string]bool{}, false
	for _, item := range items {
		if held.Needed[item.Path] == "" && (since.IsZero() || item.UsedAt.Before(since)) {
			continue
		}
		needed[item.Path] = true
		everything = everything || item.NeedsUnknown
		for _, p := range item.Needs {
			needed[p] = true
		}
	}
	for _, item := range items {
		if everything && (item.Kind == ShelfLayer || item.Kind == ShelfTool) {
			needed[item.Path] = true
		}
	}
	return needed
}
