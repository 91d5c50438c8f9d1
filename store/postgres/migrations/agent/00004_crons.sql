-- +goose Up
-- thread_id: '' for stateless ones; next_run and end_time: 0 = none.
CREATE TABLE crons (
  id TEXT COLLATE "C" PRIMARY KEY, assistant_id TEXT COLLATE "C" NOT NULL, thread_id TEXT COLLATE "C" NOT NULL, schedule TEXT COLLATE "C" NOT NULL, timezone TEXT COLLATE "C" NOT NULL,
  end_time BIGINT NOT NULL, next_run BIGINT NOT NULL, enabled BIGINT NOT NULL CHECK (enabled IN (0, 1)),
  on_run_completed TEXT COLLATE "C" NOT NULL, user_id TEXT COLLATE "C" NOT NULL, metadata TEXT COLLATE "C" NOT NULL, payload TEXT COLLATE "C" NOT NULL, request TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL
);
CREATE INDEX crons_due ON crons (next_run) WHERE enabled = 1 AND next_run > 0;
CREATE INDEX crons_thread ON crons (thread_id) WHERE thread_id <> '';
CREATE INDEX crons_assistant ON crons (assistant_id);
CREATE INDEX crons_created ON crons (created_at);
