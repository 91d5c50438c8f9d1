-- +goose Up
-- Webhooks of ended runs that are to be called. No foreign key: the run may go before its webhook has answered.
CREATE TABLE notices (
  id TEXT COLLATE "C" PRIMARY KEY, url TEXT COLLATE "C" NOT NULL, run TEXT COLLATE "C" NOT NULL, vals TEXT COLLATE "C",
  attempts BIGINT NOT NULL, due_at BIGINT NOT NULL, created_at BIGINT NOT NULL
);
CREATE INDEX notices_due ON notices (due_at);
