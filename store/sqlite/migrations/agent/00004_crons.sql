-- +goose Up
-- thread_id: '' for stateless ones; next_run and end_time: 0 = none.
CREATE TABLE crons (
  id TEXT PRIMARY KEY, assistant_id TEXT NOT NULL, thread_id TEXT NOT NULL, schedule TEXT NOT NULL, timezone TEXT NOT NULL,
  end_time INTEGER NOT NULL, next_run INTEGER NOT NULL, enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  on_run_completed TEXT NOT NULL, user_id TEXT NOT NULL, metadata TEXT NOT NULL, payload TEXT NOT NULL, request TEXT NOT NULL,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
);
CREATE INDEX crons_due ON crons (next_run) WHERE enabled = 1 AND next_run > 0;
CREATE INDEX crons_thread ON crons (thread_id) WHERE thread_id <> '';
CREATE INDEX crons_assistant ON crons (assistant_id);
CREATE INDEX crons_created ON crons (created_at);
