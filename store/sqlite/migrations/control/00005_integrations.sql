-- +goose Up
CREATE TABLE integrations (
  id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, kind TEXT NOT NULL CHECK (kind IN ('github', 'gitea', 'gitlab', 'generic')),
  name TEXT NOT NULL, doc TEXT NOT NULL, UNIQUE (tenant_id, name)
);
CREATE INDEX integrations_listed ON integrations (tenant_id, id DESC);

CREATE TABLE deliveries (
  integration_id TEXT NOT NULL REFERENCES integrations (id) ON DELETE CASCADE, key TEXT NOT NULL, at INTEGER NOT NULL,
  PRIMARY KEY (integration_id, key)
);
CREATE INDEX deliveries_age ON deliveries (integration_id, at);

CREATE TABLE status_notes (
  revision_id TEXT PRIMARY KEY REFERENCES revisions (id) ON DELETE CASCADE,
  integration_id TEXT NOT NULL, version INTEGER NOT NULL, next_at INTEGER NOT NULL, doc TEXT NOT NULL
);
CREATE INDEX status_notes_due ON status_notes (next_at);

ALTER TABLE deployments ADD COLUMN integration_id TEXT NOT NULL DEFAULT '';
UPDATE deployments SET integration_id = coalesce(json_extract(doc, '$.SourceConfig.integration_id'), '');
CREATE INDEX deployments_integration ON deployments (integration_id) WHERE integration_id <> '';
