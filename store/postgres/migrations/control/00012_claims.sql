-- +goose Up
DROP INDEX revisions_build;
CREATE INDEX revisions_waiting ON revisions (tenant_id, created_at, id) WHERE status = 'AWAITING_BUILD';
CREATE INDEX revisions_building ON revisions (lease_expires, tenant_id) WHERE status = 'BUILDING';
