-- +goose Up
-- Who may replay the frames of a temporary run after its end: its thread's metadata, as long as there are frames.
CREATE TABLE gone_threads (run_id TEXT PRIMARY KEY, thread_id TEXT NOT NULL, metadata TEXT NOT NULL) WITHOUT ROWID;
