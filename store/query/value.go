package query

import (
	"context"
	"encoding/json"
	"time"
)

const keptValue = `
SELECT value FROM kept_values WHERE key = ? AND expires_at > ?`

// KeptValue returns a value that is not over.
func (a *Agent) KeptValue(ctx context.Context, key string, now time.Time) (json.RawMessage, error) {
	found, err := read(ctx, a.engine, func(c Conn) ([]string, error) {
		return all(c, scanKept, keptValue, key, micros(now))
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return json.RawMessage(found[0]), nil
}

func scanKept(s scanner) (string, error) {
	var v secret
	err := s.Scan(&v)
	return v.String, err
}

const keepValue = `
INSERT INTO kept_values (key, value, expires_at) VALUES (?, ?, ?)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at`

// KeepValue keeps a value in place of what the key had.
func (a *Agent) KeepValue(ctx context.Context, key string, value json.RawMessage, until time.Time) error {
	return a.engine.Write(ctx, func(c Conn) error {
		_, err := c.Exec(keepValue, key, hidden(string(value)), micros(until))
		return err
	})
}

// DropValues removes values that are over.
func (a *Agent) DropValues(ctx context.Context, now time.Time) error {
	return a.engine.Write(ctx, func(c Conn) error {
		_, err := c.Exec(`DELETE FROM kept_values WHERE expires_at <= ?`, micros(now))
		return err
	})
}
