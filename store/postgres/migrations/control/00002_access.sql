-- +goose Up
ALTER TABLE tenants ADD COLUMN name TEXT COLLATE "C" NOT NULL DEFAULT '';
UPDATE tenants SET name = doc::jsonb ->> 'Name';
CREATE UNIQUE INDEX tenants_name ON tenants (name);

ALTER TABLE api_keys ADD COLUMN deployment_id TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN last_used_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX api_keys_listed ON api_keys (tenant_id, id DESC);
CREATE INDEX api_keys_deployment ON api_keys (deployment_id) WHERE deployment_id <> '';

ALTER TABLE audit ADD COLUMN outcome TEXT COLLATE "C" NOT NULL DEFAULT 'success' CHECK (outcome IN ('success', 'refused'));
ALTER TABLE audit ADD COLUMN address TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN request_id TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN changes TEXT COLLATE "C" NOT NULL DEFAULT '[]';
DROP INDEX audit_tenant;
CREATE INDEX audit_listed ON audit (tenant_id, at DESC, id DESC);
CREATE INDEX audit_subject ON audit (subject, at DESC, id DESC);
CREATE INDEX audit_principal ON audit (principal, at DESC, id DESC);
CREATE INDEX audit_operation ON audit (tenant_id, operation, at DESC, id DESC);
CREATE INDEX audit_request ON audit (request_id) WHERE request_id <> '';
CREATE INDEX audit_at ON audit (at DESC, id DESC);
