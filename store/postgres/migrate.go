package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

//go:embed migrations
var migrations embed.FS

// minVersion is the oldest server that will do, as server_version_num has it.
const minVersion = 140000

// prepare makes and migrates a schema, one process at a time.
func prepare(ctx context.Context, url, schema, kind string) (server, error) {
	fallback := ""
	if kind == "control" {
		fallback = controlSchema
	}
	sv, err := newServer(url, schema, fallback)
	if err != nil {
		return sv, err
	}
	c, err := sv.patient().connect(ctx)
	if err != nil {
		return sv, sv.explain(err)
	}
	defer func() { _ = closeConn(c) }()
	if err := checkVersion(ctx, c); err != nil {
		return sv, err
	}
	if _, err := c.Exec(ctx, "SELECT pg_advisory_lock($1)", sv.key("migrate")); err != nil {
		return sv, sv.explain(err)
	}
	if err := makeSchema(ctx, c, sv); err != nil {
		return sv, err
	}
	return sv, migrate(ctx, sv, kind)
}

func checkVersion(ctx context.Context, c *pgx.Conn) error {
	var number int
	var text string
	err := c.QueryRow(ctx, "SELECT current_setting('server_version_num')::bigint, current_setting('server_version')").Scan(&number, &text)
	if err != nil {
		return fmt.Errorf("ask the database for its version: %w", err)
	}
	if number < minVersion {
		return fmt.Errorf("PostgreSQL %s is too old; slipway needs version 14 or newer", text)
	}
	return nil
}

// makeSchema asks first: making needs a right in the database that need not be given where the schema is there.
func makeSchema(ctx context.Context, c *pgx.Conn, sv server) error {
	var there bool
	if err := c.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", sv.schema).Scan(&there); err != nil {
		return sv.explain(err)
	}
	if there {
		return nil
	}
	if _, err := c.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{sv.schema}.Sanitize()); err != nil {
		return sv.explain(err)
	}
	return nil
}

func migrate(ctx context.Context, sv server, kind string) (err error) {
	folder, err := fs.Sub(migrations, "migrations/"+kind)
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*sv.patient().config)
	defer func() { err = errors.Join(err, db.Close()) }()
	p, err := goose.NewProvider(goose.DialectPostgres, db, folder, goose.WithAllowOutofOrder(true))
	if err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate the schema %s: %w", sv.schema, err)
	}
	return nil
}
