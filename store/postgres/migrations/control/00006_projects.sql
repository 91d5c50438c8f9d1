-- +goose Up
CREATE INDEX tracing_projects_listed ON tracing_projects (tenant_id, id DESC);
