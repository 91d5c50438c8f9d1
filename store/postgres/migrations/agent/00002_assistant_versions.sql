-- +goose Up
-- system: the version was made from the graph configuration, not by a client.
CREATE TABLE assistant_versions (
  assistant_id TEXT COLLATE "C" NOT NULL REFERENCES assistants (id) ON DELETE CASCADE, version BIGINT NOT NULL, graph_id TEXT COLLATE "C" NOT NULL,
  config TEXT COLLATE "C" NOT NULL, context TEXT COLLATE "C" NOT NULL, metadata TEXT COLLATE "C" NOT NULL, name TEXT COLLATE "C" NOT NULL, description TEXT COLLATE "C",
  created_at BIGINT NOT NULL, system BIGINT NOT NULL CHECK (system IN (0, 1)), PRIMARY KEY (assistant_id, version)
);
INSERT INTO assistant_versions
SELECT id, version, graph_id, config, context, metadata, name, description, updated_at, system FROM assistants;
