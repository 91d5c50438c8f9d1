-- +goose Up
-- Traces by interval, of which at most one count is open; sealed: 1 = it never changes again.
CREATE TABLE trace_counts (
  seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, start BIGINT NOT NULL, length BIGINT NOT NULL, first_at BIGINT NOT NULL, last_at BIGINT NOT NULL,
  traces BIGINT NOT NULL CHECK (traces > 0), sealed BIGINT NOT NULL CHECK (sealed IN (0, 1))
);
CREATE UNIQUE INDEX trace_counts_open ON trace_counts (start, length) WHERE sealed = 0;
