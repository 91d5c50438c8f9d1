-- +goose Up
CREATE TABLE licences (
  id TEXT COLLATE "C" PRIMARY KEY, issued_at BIGINT NOT NULL, doc TEXT COLLATE "C" NOT NULL
);

-- One row per transaction ever counted; the key is what makes a resent one count once.
CREATE TABLE transactions (
  customer TEXT COLLATE "C" NOT NULL, id TEXT COLLATE "C" NOT NULL, licence_id TEXT COLLATE "C" NOT NULL REFERENCES licences (id), month TEXT COLLATE "C" NOT NULL,
  trace_count BIGINT NOT NULL CHECK (trace_count >= 0), interval_end BIGINT NOT NULL, received_at BIGINT NOT NULL,
  doc TEXT COLLATE "C" NOT NULL, PRIMARY KEY (customer, id)
);
CREATE INDEX transactions_end ON transactions (interval_end);

CREATE TABLE snapshots (
  licence_id TEXT COLLATE "C" NOT NULL REFERENCES licences (id), interval_start BIGINT NOT NULL, interval_end BIGINT NOT NULL,
  month TEXT COLLATE "C" NOT NULL, received_at BIGINT NOT NULL, measures TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (licence_id, interval_start, interval_end), CHECK (interval_end >= interval_start)
);
CREATE INDEX snapshots_month ON snapshots (licence_id, month, interval_end);
CREATE INDEX snapshots_end ON snapshots (interval_end);

-- What was counted, kept for good: reports read nothing else.
CREATE TABLE months (
  licence_id TEXT COLLATE "C" NOT NULL REFERENCES licences (id), month TEXT COLLATE "C" NOT NULL,
  trace_count BIGINT NOT NULL DEFAULT 0, transactions BIGINT NOT NULL DEFAULT 0, duplicates BIGINT NOT NULL DEFAULT 0,
  late BIGINT NOT NULL DEFAULT 0, snapshots BIGINT NOT NULL DEFAULT 0, measures TEXT COLLATE "C" NOT NULL DEFAULT '{}',
  peaks TEXT COLLATE "C" NOT NULL DEFAULT '{}', spans BIGINT NOT NULL DEFAULT 0, data_points BIGINT NOT NULL DEFAULT 0,
  log_records BIGINT NOT NULL DEFAULT 0, refused BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (licence_id, month)
);

-- The queue of operational telemetry on its way to another backend.
CREATE TABLE signals (
  seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind TEXT COLLATE "C" NOT NULL CHECK (kind IN ('metrics', 'traces', 'logs')),
  licence_id TEXT COLLATE "C" NOT NULL, received_at BIGINT NOT NULL, held_until BIGINT NOT NULL DEFAULT 0,
  items BIGINT NOT NULL, size BIGINT NOT NULL, payload BYTEA NOT NULL
);
CREATE INDEX signals_queue ON signals (kind, seq, held_until, size, items, received_at);
CREATE INDEX signals_received ON signals (received_at);
