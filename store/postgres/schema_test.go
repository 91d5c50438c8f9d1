package postgres_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/slipway-dev/slipway/store/postgres/pgtest"
)

const strayColumns = `
SELECT table_schema || '.' || table_name || '.' || column_name || ': ' || data_type FROM information_schema.columns
WHERE table_schema IN ('slipway', 'agent_test') AND table_name NOT LIKE 'goose%'
  AND (data_type NOT IN ('text', 'bigint', 'bytea', 'double precision') AND udt_name <> '_float4' OR data_type = 'text' AND collation_name IS DISTINCT FROM 'C')`

// Texts are compared byte by byte and numbers hold 64 bits, as in SQLite: list orders and prefixes depend on it.
func TestColumnsAreWhatTheQueriesNeed(t *testing.T) {
	t.Parallel()
	ctx, url := context.Background(), pgtest.URL(t)
	openControl(t, url)
	openAgent(t, url, "agent_test")
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	found, err := c.Query(ctx, strayColumns)
	if err != nil {
		t.Fatal(err)
	}
	stray, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, column := range stray {
		t.Errorf("%s: write TEXT COLLATE \"C\", BIGINT, BYTEA, DOUBLE PRECISION or REAL[]", column)
	}
}

// A migration is written for both databases, under one number and name.
func TestMigrationsAreThoseOfSQLite(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"control", "agent"} {
		want, err := os.ReadDir(filepath.Join("..", "sqlite", "migrations", kind))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range want {
			if _, err := os.Stat(filepath.Join("migrations", kind, file.Name())); err != nil {
				t.Errorf("%v; write it as the one in store/sqlite/migrations/%s, with TEXT COLLATE \"C\" and BIGINT", err, kind)
			}
		}
	}
}
