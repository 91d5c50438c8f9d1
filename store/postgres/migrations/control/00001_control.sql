-- +goose Up
-- What SQLite's json_each is: the elements of a JSON array with their positions. jsonb knows no U+0000.
-- +goose StatementBegin
CREATE FUNCTION json_each(list TEXT, OUT key BIGINT, OUT value JSONB) RETURNS SETOF RECORD LANGUAGE sql IMMUTABLE ROWS 10 AS $$
  SELECT place - 1, element FROM jsonb_array_elements(replace(list, '\u0000', '\ufffd')::jsonb) WITH ORDINALITY AS t(element, place)
$$;
-- +goose StatementEnd

CREATE TABLE deployments (
  id TEXT COLLATE "C" PRIMARY KEY, tenant_id TEXT COLLATE "C" NOT NULL, name TEXT COLLATE "C" NOT NULL,
  status TEXT COLLATE "C" NOT NULL CHECK (status IN ('AWAITING_DATABASE', 'READY', 'UNUSED', 'AWAITING_DELETE', 'UNKNOWN')),
  image_version TEXT COLLATE "C" NOT NULL, type TEXT COLLATE "C" NOT NULL, created_at BIGINT NOT NULL, doc TEXT COLLATE "C" NOT NULL,
  UNIQUE (tenant_id, name)
);
CREATE INDEX deployments_created ON deployments (tenant_id, created_at DESC, id DESC);

CREATE TABLE revisions (
  id TEXT COLLATE "C" PRIMARY KEY, deployment_id TEXT COLLATE "C" NOT NULL REFERENCES deployments (id) ON DELETE CASCADE, tenant_id TEXT COLLATE "C" NOT NULL,
  number BIGINT NOT NULL,
  status TEXT COLLATE "C" NOT NULL CHECK (status IN ('CREATING', 'QUEUED', 'AWAITING_BUILD', 'BUILDING', 'AWAITING_DEPLOY', 'DEPLOYING',
    'DEPLOYED', 'CREATE_FAILED', 'BUILD_FAILED', 'DEPLOY_FAILED', 'SKIPPED', 'INTERRUPTED', 'UNKNOWN')),
  created_at BIGINT NOT NULL, lease_expires BIGINT NOT NULL, doc TEXT COLLATE "C" NOT NULL, UNIQUE (deployment_id, number)
);
CREATE INDEX revisions_build ON revisions (created_at, id) WHERE status IN ('AWAITING_BUILD', 'BUILDING');
CREATE INDEX revisions_created ON revisions (created_at DESC, id DESC);

CREATE TABLE revision_events (
  seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, revision_id TEXT COLLATE "C" NOT NULL REFERENCES revisions (id) ON DELETE CASCADE,
  status TEXT COLLATE "C" NOT NULL, reason TEXT COLLATE "C" NOT NULL, at BIGINT NOT NULL
);
CREATE INDEX revision_events_revision ON revision_events (revision_id, seq);

CREATE TABLE secret_sets (
  id TEXT COLLATE "C" PRIMARY KEY, deployment_id TEXT COLLATE "C" NOT NULL, tenant_id TEXT COLLATE "C" NOT NULL, doc TEXT COLLATE "C" NOT NULL
);
CREATE INDEX secret_sets_deployment ON secret_sets (deployment_id);

CREATE TABLE logs (
  seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, deployment_id TEXT COLLATE "C" NOT NULL, revision_id TEXT COLLATE "C" NOT NULL, kind TEXT COLLATE "C" NOT NULL,
  at BIGINT NOT NULL, level TEXT COLLATE "C" NOT NULL, message TEXT COLLATE "C" NOT NULL
);
CREATE INDEX logs_deployment ON logs (deployment_id, kind, seq);
CREATE INDEX logs_revision ON logs (revision_id, kind, seq);

CREATE TABLE uploads (
  id TEXT COLLATE "C" PRIMARY KEY, deployment_id TEXT COLLATE "C" NOT NULL, tenant_id TEXT COLLATE "C" NOT NULL, object_path TEXT COLLATE "C" NOT NULL, doc TEXT COLLATE "C" NOT NULL,
  UNIQUE (deployment_id, object_path)
);

CREATE TABLE tenants (id TEXT COLLATE "C" PRIMARY KEY, created_at BIGINT NOT NULL, doc TEXT COLLATE "C" NOT NULL);

CREATE TABLE api_keys (id TEXT COLLATE "C" PRIMARY KEY, tenant_id TEXT COLLATE "C" NOT NULL, hash TEXT COLLATE "C" NOT NULL UNIQUE, doc TEXT COLLATE "C" NOT NULL);

CREATE TABLE tracing_projects (
  id TEXT COLLATE "C" PRIMARY KEY, tenant_id TEXT COLLATE "C" NOT NULL, deployment_id TEXT COLLATE "C" NOT NULL, name TEXT COLLATE "C" NOT NULL, doc TEXT COLLATE "C" NOT NULL, UNIQUE (tenant_id, name)
);
CREATE INDEX tracing_projects_deployment ON tracing_projects (deployment_id);

CREATE TABLE audit (
  id TEXT COLLATE "C" PRIMARY KEY, tenant_id TEXT COLLATE "C" NOT NULL, principal TEXT COLLATE "C" NOT NULL, operation TEXT COLLATE "C" NOT NULL, subject TEXT COLLATE "C" NOT NULL,
  detail TEXT COLLATE "C" NOT NULL, at BIGINT NOT NULL
);
CREATE INDEX audit_tenant ON audit (tenant_id, at);
