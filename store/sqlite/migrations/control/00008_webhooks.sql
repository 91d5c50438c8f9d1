-- +goose Up
CREATE TABLE webhooks (id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, doc TEXT NOT NULL);
CREATE INDEX webhooks_tenant ON webhooks (tenant_id, id DESC);

CREATE TABLE webhook_deliveries (
  id TEXT PRIMARY KEY, webhook_id TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE, tenant_id TEXT NOT NULL, seq INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'delivered', 'failed')), next_at INTEGER NOT NULL, created_at INTEGER NOT NULL,
  doc TEXT NOT NULL, UNIQUE (webhook_id, seq)
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_at, id) WHERE status = 'pending';
