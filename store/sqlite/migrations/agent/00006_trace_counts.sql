-- +goose Up
-- Traces by interval, of which at most one count is open; sealed: 1 = it never changes again.
CREATE TABLE trace_counts (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, start INTEGER NOT NULL, length INTEGER NOT NULL, first_at INTEGER NOT NULL, last_at INTEGER NOT NULL,
  traces INTEGER NOT NULL CHECK (traces > 0), sealed INTEGER NOT NULL CHECK (sealed IN (0, 1))
);
CREATE UNIQUE INDEX trace_counts_open ON trace_counts (start, length) WHERE sealed = 0;
