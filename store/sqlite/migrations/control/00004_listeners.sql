-- +goose Up
CREATE TABLE listeners (
  id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, compute_id TEXT NOT NULL, created_at INTEGER NOT NULL, doc TEXT NOT NULL,
  UNIQUE (tenant_id, compute_id)
);
CREATE INDEX listeners_created ON listeners (tenant_id, created_at DESC, id DESC);

CREATE TABLE deployment_metrics (
  deployment_id TEXT PRIMARY KEY REFERENCES deployments (id) ON DELETE CASCADE, tenant_id TEXT NOT NULL, doc TEXT NOT NULL
);

ALTER TABLE deployments ADD COLUMN listener_id TEXT NOT NULL DEFAULT '';
UPDATE deployments SET listener_id = coalesce(json_extract(doc, '$.SourceConfig.listener_id'), '');
CREATE INDEX deployments_listener ON deployments (listener_id, created_at DESC, id DESC);
