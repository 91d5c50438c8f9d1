package sqlite

import (
	sqldriver "database/sql/driver"

	driver "modernc.org/sqlite"

	"github.com/slipway-dev/slipway/store/query"
)

// dialect is SQLite's way of saying what databases say differently.
type dialect struct{}

func (dialect) Contains(column string) string { return "slipway_contains(" + column + ", ?)" }
func (dialect) Matches(column string) string  { return "slipway_matches(" + column + ", ?)" }
func (dialect) Folded(column string) string   { return "slipway_folded(" + column + ", ?)" }
func (dialect) Unique(err error) bool         { return code(err) == codeConstraint }

// registerFunctions teaches connections of the driver the rules that SQLite has no words for.
func registerFunctions(d *driver.Driver) error {
	for name, fn := range map[string]func(a, b string) bool{
		"slipway_contains": query.Contains, "slipway_matches": query.Matches, "slipway_folded": query.Folded,
	} {
		call := func(_ *driver.FunctionContext, args []sqldriver.Value) (sqldriver.Value, error) {
			a, okA := args[0].(string)
			b, okB := args[1].(string)
			return okA && okB && fn(a, b), nil
		}
		if err := d.RegisterDeterministicScalarFunction(name, 2, call); err != nil {
			return err
		}
	}
	return nil
}
