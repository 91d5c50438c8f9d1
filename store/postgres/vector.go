package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Vectors are columns of REAL[].

func (dialect) Vector(v []float32) any {
	b := append(make([]byte, 0, 12*len(v)+2), '{')
	for i, x := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(x), 'g', -1, 32)
	}
	return string(append(b, '}'))
}

func (dialect) StoredVector() string             { return "CAST(CAST(? AS TEXT) AS REAL[])" }
func (dialect) VectorBytes(column string) string { return "array_send(" + column + ")" }

// Likeness is left to the server where there is no pgvector: the database would take a row for every number.
func (d dialect) Likeness(column string) string {
	if d.vectors == "" {
		return ""
	}
	typ := d.vectors
	return "-(CAST(" + column + " AS " + typ + ") OPERATOR(" + d.operators + ".<#>) CAST(translate(CAST(? AS TEXT), '{}', '[]') AS " + typ + "))"
}

// pgvector returns the type of the extension pgvector and the schema of its operators, making the extension if the role may;
// both are empty where there is none.
func pgvector(ctx context.Context, sv server) (typ, operators string, err error) {
	c, err := sv.connect(ctx)
	if err != nil {
		return "", "", err
	}
	defer c.Close(ctx)
	// Who may not make it, or whose server has none, goes without.
	_, made := c.Exec(ctx, `CREATE EXTENSION IF NOT EXISTS vector SCHEMA public`)
	const where = `SELECT n.nspname FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'vector'`
	var schema string
	err = c.QueryRow(ctx, where).Scan(&schema)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", "", ignoreRefusal(made)
	}
	quoted := pgx.Identifier{schema}.Sanitize()
	return quoted + ".vector", quoted, err
}

// ignoreRefusal keeps what is no answer of the database.
func ignoreRefusal(err error) error {
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) {
		return nil
	}
	return err
}

// arrayHead is what stands before the elements of a sent array of one dimension: dimensions, flags, type, length, bound.
const arrayHead = 20

// Multiply reads an array as Postgres sends it: each element with its length before it.
func (dialect) Multiply(stored []byte, v []float32) float64 {
	if len(stored) != arrayHead+8*len(v) {
		return 0
	}
	elements := stored[arrayHead:]
	var sum float32
	for i, x := range v {
		sum += x * math.Float32frombits(binary.BigEndian.Uint32(elements[8*i+4:]))
	}
	return float64(sum)
}
