-- +goose Up
CREATE TABLE listeners (
  id TEXT COLLATE "C" PRIMARY KEY, tenant_id TEXT COLLATE "C" NOT NULL, compute_id TEXT COLLATE "C" NOT NULL, created_at BIGINT NOT NULL, doc TEXT COLLATE "C" NOT NULL,
  UNIQUE (tenant_id, compute_id)
);
CREATE INDEX listeners_created ON listeners (tenant_id, created_at DESC, id DESC);

CREATE TABLE deployment_metrics (
  deployment_id TEXT COLLATE "C" PRIMARY KEY REFERENCES deployments (id) ON DELETE CASCADE, tenant_id TEXT COLLATE "C" NOT NULL, doc TEXT COLLATE "C" NOT NULL
);

ALTER TABLE deployments ADD COLUMN listener_id TEXT COLLATE "C" NOT NULL DEFAULT '';
UPDATE deployments SET listener_id = coalesce(replace(doc, '\u0000', '')::jsonb #>> '{SourceConfig,listener_id}', '');
CREATE INDEX deployments_listener ON deployments (listener_id, created_at DESC, id DESC);
