-- +goose Up
-- What user code puts aside for a while (agent-server reference 13, langgraph_api.cache).
CREATE TABLE kept_values (key TEXT COLLATE "C" PRIMARY KEY, value TEXT COLLATE "C" NOT NULL, expires_at BIGINT NOT NULL);
CREATE INDEX kept_values_expires ON kept_values (expires_at);
