-- +goose Up
CREATE TABLE deployments (
  id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, name TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('AWAITING_DATABASE', 'READY', 'UNUSED', 'AWAITING_DELETE', 'UNKNOWN')),
  image_version TEXT NOT NULL, type TEXT NOT NULL, created_at INTEGER NOT NULL, doc TEXT NOT NULL,
  UNIQUE (tenant_id, name)
);
CREATE INDEX deployments_created ON deployments (tenant_id, created_at DESC, id DESC);

CREATE TABLE revisions (
  id TEXT PRIMARY KEY, deployment_id TEXT NOT NULL REFERENCES deployments (id) ON DELETE CASCADE, tenant_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('CREATING', 'QUEUED', 'AWAITING_BUILD', 'BUILDING', 'AWAITING_DEPLOY', 'DEPLOYING',
    'DEPLOYED', 'CREATE_FAILED', 'BUILD_FAILED', 'DEPLOY_FAILED', 'SKIPPED', 'INTERRUPTED', 'UNKNOWN')),
  created_at INTEGER NOT NULL, lease_expires INTEGER NOT NULL, doc TEXT NOT NULL, UNIQUE (deployment_id, number)
);
CREATE INDEX revisions_build ON revisions (created_at, id) WHERE status IN ('AWAITING_BUILD', 'BUILDING');
CREATE INDEX revisions_created ON revisions (created_at DESC, id DESC);

CREATE TABLE revision_events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, revision_id TEXT NOT NULL REFERENCES revisions (id) ON DELETE CASCADE,
  status TEXT NOT NULL, reason TEXT NOT NULL, at INTEGER NOT NULL
);
CREATE INDEX revision_events_revision ON revision_events (revision_id, seq);

CREATE TABLE secret_sets (
  id TEXT PRIMARY KEY, deployment_id TEXT NOT NULL, tenant_id TEXT NOT NULL, doc TEXT NOT NULL
);
CREATE INDEX secret_sets_deployment ON secret_sets (deployment_id);

CREATE TABLE logs (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, deployment_id TEXT NOT NULL, revision_id TEXT NOT NULL, kind TEXT NOT NULL,
  at INTEGER NOT NULL, level TEXT NOT NULL, message TEXT NOT NULL
);
CREATE INDEX logs_deployment ON logs (deployment_id, kind, seq);
CREATE INDEX logs_revision ON logs (revision_id, kind, seq);

CREATE TABLE uploads (
  id TEXT PRIMARY KEY, deployment_id TEXT NOT NULL, tenant_id TEXT NOT NULL, object_path TEXT NOT NULL, doc TEXT NOT NULL,
  UNIQUE (deployment_id, object_path)
);

CREATE TABLE tenants (id TEXT PRIMARY KEY, created_at INTEGER NOT NULL, doc TEXT NOT NULL);

CREATE TABLE api_keys (id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, hash TEXT NOT NULL UNIQUE, doc TEXT NOT NULL);

CREATE TABLE tracing_projects (
  id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, deployment_id TEXT NOT NULL, name TEXT NOT NULL, doc TEXT NOT NULL, UNIQUE (tenant_id, name)
);
CREATE INDEX tracing_projects_deployment ON tracing_projects (deployment_id);

CREATE TABLE audit (
  id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, principal TEXT NOT NULL, operation TEXT NOT NULL, subject TEXT NOT NULL,
  detail TEXT NOT NULL, at INTEGER NOT NULL
);
CREATE INDEX audit_tenant ON audit (tenant_id, at);
