-- +goose Up
ALTER TABLE deployments ADD COLUMN due_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX deployments_due ON deployments (due_at) WHERE due_at > 0;
CREATE INDEX deployments_type ON deployments (tenant_id, type);

CREATE INDEX logs_deploy_age ON logs (at) WHERE kind = 'deploy';

CREATE TABLE idempotency (
  scope TEXT COLLATE "C" PRIMARY KEY, tenant_id TEXT COLLATE "C" NOT NULL, ends_at BIGINT NOT NULL, running BIGINT NOT NULL, doc TEXT COLLATE "C" NOT NULL
);
CREATE INDEX idempotency_ends ON idempotency (ends_at);
CREATE INDEX idempotency_tenant ON idempotency (tenant_id, ends_at);
CREATE INDEX idempotency_running ON idempotency (scope) WHERE running = 1;
