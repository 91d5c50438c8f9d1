package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// dialect is Postgres's way of saying what databases say differently.
type dialect struct {
	vectors, operators string // pgvector's type and the schema of its operators; "" = there is none
}

func (dialect) Contains(column string) string {
	return "slipway_json(" + column + ") @> slipway_json(?)"
}

func (dialect) Matches(column string) string {
	return "slipway_matches(slipway_json(" + column + "), slipway_json(?))"
}

func (dialect) Allows(column string) string {
	return "slipway_allows(slipway_json(" + column + "), slipway_json(?))"
}

func (dialect) AllowsItem() string {
	return "slipway_allows(slipway_item(slipway_json(value), slipway_json(namespace), key), slipway_json(?))"
}

func (dialect) Folded(column string) string {
	return "strpos(lower(" + column + ` COLLATE "und-x-icu"), lower(CAST(? AS TEXT) COLLATE "und-x-icu")) > 0`
}

func (dialect) Unique(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "23505"
}
