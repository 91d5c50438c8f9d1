package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
)

// Item is an entry of the key-value store (reference 7).
type Item struct {
	Namespace []string        `json:"namespace"`
	Key       string          `json:"key"`
	Value     json.RawMessage `json:"value"`
	CreatedAt time.Time       `json:"created_at"`
	UpdatedAt time.Time       `json:"updated_at"`
	Score     *float64        `json:"score,omitempty"`
}

// CheckNamespace refuses labels that could not be told apart in a dot-joined namespace (reference 7).
func CheckNamespace(namespace []string) error {
	for _, label := range namespace {
		if label == "" || strings.Contains(label, ".") {
			return slipway.Errorf(slipway.CodeInvalid, "Namespace labels cannot be empty or contain periods. Received: %v", namespace)
		}
	}
	return nil
}

// StoreOp is one operation of a store batch (reference 15); exactly one member is set.
type StoreOp struct {
	Get        *GetOp        `json:"get,omitempty"`
	Put        *PutOp        `json:"put,omitempty"`
	Search     *SearchOp     `json:"search,omitempty"`
	Namespaces *NamespacesOp `json:"namespaces,omitempty"`
}

// GetOp reads one item. RefreshTTL nil = the store's own setting.
type GetOp struct {
	Namespace  []string `json:"namespace"`
	Key        string   `json:"key"`
	RefreshTTL *bool    `json:"refresh_ttl,omitempty"`
	Filter     *Filter  `json:"-"` // an item it does not allow is CodeNotFound "Item not found"
}

// PutOp writes an item; a null or absent Value deletes it.
type PutOp struct {
	Namespace []string        `json:"namespace"`
	Key       string          `json:"key"`
	Value     json.RawMessage `json:"value"`
	Index     json.RawMessage `json:"index,omitempty"`
	TTL       *float64        `json:"ttl,omitempty"` // minutes
	// Indexed is the name of the index that Vectors were made for; "" = the item is not indexed (yet).
	Indexed string       `json:"-"`
	Vectors []ItemVector `json:"-"`
	// Filter must allow the item that is there and the one that is put; else the operation is CodeForbidden "Not authorized".
	Filter *Filter `json:"-"`
}

// SearchOp lists items below a namespace prefix by updated_at descending, with a Vector by likeness: the best of an item's
// vectors counts, and items without any come last, unscored.
type SearchOp struct {
	Prefix     []string        `json:"namespace_prefix"`
	Filter     json.RawMessage `json:"filter,omitempty"`
	Query      string          `json:"query,omitempty"`
	Limit      int             `json:"limit"`
	Offset     int             `json:"offset"`
	RefreshTTL *bool           `json:"refresh_ttl,omitempty"`
	// Vector is the unit vector of Query, nil = there is no index or no query; Indexed names the index it was made for.
	Vector  []float32 `json:"-"`
	Indexed string    `json:"-"`
	Access  *Filter   `json:"-"` // items it does not allow are left out
}

// NamespacesOp lists namespaces; "*" in a path matches one label.
type NamespacesOp struct {
	Prefix   []string `json:"prefix,omitempty"`
	Suffix   []string `json:"suffix,omitempty"`
	MaxDepth int      `json:"max_depth,omitempty"` // 0 = whole
	Limit    int      `json:"limit"`
	Offset   int      `json:"offset"`
	Access   *Filter  `json:"-"` // namespaces without an item it allows are left out
}

// ItemRules are what the configuration says of items that do not say it themselves (`store.ttl`, reference 15).
type ItemRules struct {
	KeepOnRead bool     // refresh_on_read is false: a read does not restart an item's time to live
	DefaultTTL *float64 // minutes; nil = items live until they are deleted
}

// Apply fills in what operations leave open.
func (r ItemRules) Apply(ops []StoreOp) []StoreOp {
	refresh := !r.KeepOnRead
	for i, op := range ops {
		switch {
		case op.Get != nil && op.Get.RefreshTTL == nil:
			get := *op.Get
			get.RefreshTTL = &refresh
			ops[i].Get = &get
		case op.Search != nil && op.Search.RefreshTTL == nil:
			search := *op.Search
			search.RefreshTTL = &refresh
			ops[i].Search = &search
		case op.Put != nil && op.Put.TTL == nil && r.DefaultTTL != nil:
			put := *op.Put
			put.TTL = r.DefaultTTL
			ops[i].Put = &put
		}
	}
	return ops
}

// StoreResult answers one StoreOp: Item for a get (nil = none), Items for a search, Namespaces for a listing.
type StoreResult struct {
	Item       *Item      `json:"item,omitempty"`
	Items      []Item     `json:"items,omitempty"`
	Namespaces [][]string `json:"namespaces,omitempty"`
}

// itemOperators are the conditions of a search's filter (reference 15).
func itemOperators() []string { return []string{"$eq", "$ne", "$gt", "$gte", "$lt", "$lte"} }

// CheckItemFilter refuses a filter with a condition that does not exist, which would match nothing.
func CheckItemFilter(filter json.RawMessage) error {
	if len(filter) == 0 {
		return nil
	}
	var doc any
	if err := json.Unmarshal(filter, &doc); err != nil {
		return fmt.Errorf("it is no JSON: %w", err)
	}
	return checkConditions(doc)
}

func checkConditions(doc any) error {
	object, _ := doc.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if strings.HasPrefix(name, "$") {
			if !slices.Contains(itemOperators(), name) {
				return fmt.Errorf("%q is no condition; use one of %s", name, strings.Join(itemOperators(), ", "))
			}
			continue
		}
		if err := checkConditions(object[name]); err != nil {
			return err
		}
	}
	return nil
}
