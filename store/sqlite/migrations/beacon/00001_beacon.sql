-- +goose Up
CREATE TABLE licences (
  id TEXT PRIMARY KEY, issued_at INTEGER NOT NULL, doc TEXT NOT NULL
);

-- One row per transaction ever counted; the key is what makes a resent one count once.
CREATE TABLE transactions (
  customer TEXT NOT NULL, id TEXT NOT NULL, licence_id TEXT NOT NULL REFERENCES licences (id), month TEXT NOT NULL,
  trace_count INTEGER NOT NULL CHECK (trace_count >= 0), interval_end INTEGER NOT NULL, received_at INTEGER NOT NULL,
  doc TEXT NOT NULL, PRIMARY KEY (customer, id)
) WITHOUT ROWID;
CREATE INDEX transactions_end ON transactions (interval_end);

CREATE TABLE snapshots (
  licence_id TEXT NOT NULL REFERENCES licences (id), interval_start INTEGER NOT NULL, interval_end INTEGER NOT NULL,
  month TEXT NOT NULL, received_at INTEGER NOT NULL, measures TEXT NOT NULL,
  PRIMARY KEY (licence_id, interval_start, interval_end), CHECK (interval_end >= interval_start)
) WITHOUT ROWID;
CREATE INDEX snapshots_month ON snapshots (licence_id, month, interval_end);
CREATE INDEX snapshots_end ON snapshots (interval_end);

-- What was counted, kept for good: reports read nothing else.
CREATE TABLE months (
  licence_id TEXT NOT NULL REFERENCES licences (id), month TEXT NOT NULL,
  trace_count INTEGER NOT NULL DEFAULT 0, transactions INTEGER NOT NULL DEFAULT 0, duplicates INTEGER NOT NULL DEFAULT 0,
  late INTEGER NOT NULL DEFAULT 0, snapshots INTEGER NOT NULL DEFAULT 0, measures TEXT NOT NULL DEFAULT '{}',
  peaks TEXT NOT NULL DEFAULT '{}', spans INTEGER NOT NULL DEFAULT 0, data_points INTEGER NOT NULL DEFAULT 0,
  log_records INTEGER NOT NULL DEFAULT 0, refused INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (licence_id, month)
) WITHOUT ROWID;

-- The queue of operational telemetry on its way to another backend.
CREATE TABLE signals (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL CHECK (kind IN ('metrics', 'traces', 'logs')),
  licence_id TEXT NOT NULL, received_at INTEGER NOT NULL, held_until INTEGER NOT NULL DEFAULT 0,
  items INTEGER NOT NULL, size INTEGER NOT NULL, payload BLOB NOT NULL
);
CREATE INDEX signals_queue ON signals (kind, seq, held_until, size, items, received_at);
CREATE INDEX signals_received ON signals (received_at);
