package sqlite

import (
	sqldriver "database/sql/driver"
	"sync/atomic"

	driver "modernc.org/sqlite"

	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/store/query"
)

// dialect is SQLite's way of saying what databases say differently.
type dialect struct{}

func (dialect) Contains(column string) string { return "slipway_contains(" + column + ", ?)" }
func (dialect) Matches(column string) string  { return "slipway_matches(" + column + ", ?)" }
func (dialect) Allows(column string) string   { return "slipway_allows(" + column + ", ?)" }
func (dialect) AllowsItem() string            { return "slipway_allows_item(value, namespace, key, ?)" }
func (dialect) Folded(column string) string   { return "slipway_folded(" + column + ", ?)" }
func (dialect) Unique(err error) bool         { return code(err) == codeConstraint }

// registerFunctions teaches connections of the driver the rules that SQLite has no words for.
func registerFunctions(d *driver.Driver) error {
	access := &filterCache{}
	functions := map[string]func(args []string) bool{
		"slipway_contains": func(args []string) bool { return query.Contains(args[0], args[1]) },
		"slipway_matches":  func(args []string) bool { return query.Matches(args[0], args[1]) },
		"slipway_folded":   func(args []string) bool { return query.Folded(args[0], args[1]) },
		"slipway_allows": func(args []string) bool {
			f, ok := access.parse(args[1])
			return ok && f.Allows([]byte(args[0]))
		},
	}
	for name, fn := range functions {
		if err := register(d, name, 2, fn); err != nil {
			return err
		}
	}
	if err := registerProduct(d); err != nil {
		return err
	}
	return register(d, "slipway_allows_item", 4, func(args []string) bool {
		f, ok := access.parse(args[3])
		return ok && query.AllowsItem(args[0], args[1], args[2], f)
	})
}

// filterCache keeps the access filter that was parsed last: a statement asks with the same one for every row.
type filterCache struct{ last atomic.Pointer[parsedFilter] }

type parsedFilter struct {
	text   string
	filter *agent.Filter
	ok     bool
}

// parse reads a filter; one that cannot be read allows nothing.
func (c *filterCache) parse(text string) (*agent.Filter, bool) {
	p := c.last.Load()
	if p == nil || p.text != text {
		f, err := agent.ParseFilter([]byte(text))
		p = &parsedFilter{text, f, err == nil}
		c.last.Store(p)
	}
	return p.filter, p.ok
}

// register makes a condition on texts a function of the database; what is no text satisfies none.
func register(d *driver.Driver, name string, arguments int32, fn func([]string) bool) error {
	call := func(_ *driver.FunctionContext, args []sqldriver.Value) (sqldriver.Value, error) {
		texts := make([]string, len(args))
		for i, arg := range args {
			text, ok := arg.(string)
			if !ok {
				return false, nil
			}
			texts[i] = text
		}
		return fn(texts), nil
	}
	return d.RegisterDeterministicScalarFunction(name, arguments, call)
}
