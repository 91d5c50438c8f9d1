-- +goose Up
-- Webhooks of ended runs that are to be called. No foreign key: the run may go before its webhook has answered.
CREATE TABLE notices (
  id TEXT PRIMARY KEY, url TEXT NOT NULL, run TEXT NOT NULL, vals TEXT, attempts INTEGER NOT NULL, due_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX notices_due ON notices (due_at);
