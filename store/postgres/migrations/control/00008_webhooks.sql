-- +goose Up
CREATE TABLE webhooks (id TEXT COLLATE "C" PRIMARY KEY, tenant_id TEXT COLLATE "C" NOT NULL, doc TEXT COLLATE "C" NOT NULL);
CREATE INDEX webhooks_tenant ON webhooks (tenant_id, id DESC);

CREATE TABLE webhook_deliveries (
  id TEXT COLLATE "C" PRIMARY KEY, webhook_id TEXT COLLATE "C" NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE, tenant_id TEXT COLLATE "C" NOT NULL, seq BIGINT NOT NULL,
  status TEXT COLLATE "C" NOT NULL CHECK (status IN ('pending', 'delivered', 'failed')), next_at BIGINT NOT NULL, created_at BIGINT NOT NULL,
  doc TEXT COLLATE "C" NOT NULL, UNIQUE (webhook_id, seq)
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_at, id) WHERE status = 'pending';
