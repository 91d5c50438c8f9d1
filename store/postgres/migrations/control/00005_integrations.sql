-- +goose Up
CREATE TABLE integrations (
  id TEXT COLLATE "C" PRIMARY KEY, tenant_id TEXT COLLATE "C" NOT NULL, kind TEXT COLLATE "C" NOT NULL CHECK (kind IN ('github', 'gitea', 'gitlab', 'generic')),
  name TEXT COLLATE "C" NOT NULL, doc TEXT COLLATE "C" NOT NULL, UNIQUE (tenant_id, name)
);
CREATE INDEX integrations_listed ON integrations (tenant_id, id DESC);

CREATE TABLE deliveries (
  integration_id TEXT COLLATE "C" NOT NULL REFERENCES integrations (id) ON DELETE CASCADE, key TEXT COLLATE "C" NOT NULL, at BIGINT NOT NULL,
  PRIMARY KEY (integration_id, key)
);
CREATE INDEX deliveries_age ON deliveries (integration_id, at);

CREATE TABLE status_notes (
  revision_id TEXT COLLATE "C" PRIMARY KEY REFERENCES revisions (id) ON DELETE CASCADE,
  integration_id TEXT COLLATE "C" NOT NULL, version BIGINT NOT NULL, next_at BIGINT NOT NULL, doc TEXT COLLATE "C" NOT NULL
);
CREATE INDEX status_notes_due ON status_notes (next_at);

ALTER TABLE deployments ADD COLUMN integration_id TEXT COLLATE "C" NOT NULL DEFAULT '';
UPDATE deployments SET integration_id = coalesce(replace(doc, '\u0000', '')::jsonb #>> '{SourceConfig,integration_id}', '');
CREATE INDEX deployments_integration ON deployments (integration_id) WHERE integration_id <> '';
