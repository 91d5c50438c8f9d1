-- +goose Up
ALTER TABLE deployments ADD COLUMN due_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX deployments_due ON deployments (due_at) WHERE due_at > 0;
CREATE INDEX deployments_type ON deployments (tenant_id, type);

CREATE INDEX logs_deploy_age ON logs (at) WHERE kind = 'deploy';

CREATE TABLE idempotency (
  scope TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, ends_at INTEGER NOT NULL, running INTEGER NOT NULL, doc TEXT NOT NULL
);
CREATE INDEX idempotency_ends ON idempotency (ends_at);
CREATE INDEX idempotency_tenant ON idempotency (tenant_id, ends_at);
CREATE INDEX idempotency_running ON idempotency (scope) WHERE running = 1;
