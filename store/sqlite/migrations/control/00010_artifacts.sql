-- +goose Up
CREATE TABLE artifacts (digest TEXT PRIMARY KEY, doc TEXT NOT NULL);
CREATE TABLE build_turns (tenant_id TEXT PRIMARY KEY, at INTEGER NOT NULL);
