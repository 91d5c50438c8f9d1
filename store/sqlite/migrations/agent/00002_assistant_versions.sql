-- +goose Up
-- system: the version was made from the graph configuration, not by a client.
CREATE TABLE assistant_versions (
  assistant_id TEXT NOT NULL REFERENCES assistants (id) ON DELETE CASCADE, version INTEGER NOT NULL, graph_id TEXT NOT NULL,
  config TEXT NOT NULL, context TEXT NOT NULL, metadata TEXT NOT NULL, name TEXT NOT NULL, description TEXT,
  created_at INTEGER NOT NULL, system INTEGER NOT NULL CHECK (system IN (0, 1)), PRIMARY KEY (assistant_id, version)
);
INSERT INTO assistant_versions
SELECT id, version, graph_id, config, context, metadata, name, description, updated_at, system FROM assistants;
