-- +goose Up
CREATE TABLE assistants (
  id TEXT PRIMARY KEY, graph_id TEXT NOT NULL, config TEXT NOT NULL, context TEXT NOT NULL, metadata TEXT NOT NULL,
  version INTEGER NOT NULL, name TEXT NOT NULL, description TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  system INTEGER NOT NULL CHECK (system IN (0, 1))
);
CREATE INDEX assistants_created ON assistants (created_at);

CREATE TABLE threads (
  id TEXT PRIMARY KEY, metadata TEXT NOT NULL, config TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('idle', 'busy', 'interrupted', 'error')),
  base TEXT NOT NULL CHECK (base IN ('idle', 'interrupted', 'error')),
  language TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, state_updated_at INTEGER NOT NULL,
  error TEXT, interrupts TEXT NOT NULL, vals TEXT, state TEXT
);
CREATE INDEX threads_updated ON threads (updated_at);
CREATE INDEX threads_created ON threads (created_at);
CREATE INDEX threads_status ON threads (status, updated_at);

CREATE TABLE runs (
  id TEXT PRIMARY KEY, thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
  assistant_id TEXT NOT NULL, graph_id TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'running', 'success', 'error', 'timeout', 'interrupted')),
  multitask TEXT NOT NULL, metadata TEXT NOT NULL, kwargs TEXT NOT NULL, temporary INTEGER NOT NULL,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, started_at INTEGER NOT NULL, ended_at INTEGER NOT NULL,
  failure TEXT, epoch INTEGER NOT NULL, attempt INTEGER NOT NULL, instance TEXT NOT NULL, checkpointed INTEGER NOT NULL,
  cancel_action TEXT NOT NULL CHECK (cancel_action IN ('', 'interrupt', 'rollback')), cancel_reason TEXT NOT NULL
);
CREATE UNIQUE INDEX runs_one_running ON runs (thread_id) WHERE status = 'running';
CREATE INDEX runs_pending ON runs (created_at, id) WHERE status = 'pending';
CREATE INDEX runs_instance ON runs (instance) WHERE status = 'running';
CREATE INDEX runs_thread ON runs (thread_id, created_at, id);
CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at > 0;

-- What the thread was before a run first started; rollback puts it back.
CREATE TABLE befores (
  run_id TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE, base TEXT NOT NULL, language TEXT NOT NULL,
  state_updated_at INTEGER NOT NULL, error TEXT, interrupts TEXT NOT NULL, vals TEXT, state TEXT
);

-- No foreign key to threads: savers may be asked for threads that no client has made.
CREATE TABLE checkpoints (
  thread_id TEXT NOT NULL, ns TEXT NOT NULL, id TEXT NOT NULL, parent_id TEXT NOT NULL, run_id TEXT NOT NULL,
  language TEXT NOT NULL, metadata TEXT NOT NULL, header TEXT NOT NULL, PRIMARY KEY (thread_id, ns, id)
);
CREATE INDEX checkpoints_run ON checkpoints (run_id) WHERE run_id <> '';
CREATE INDEX checkpoints_id ON checkpoints (thread_id, id);

CREATE TABLE blobs (
  thread_id TEXT NOT NULL, ns TEXT NOT NULL, channel TEXT NOT NULL, version TEXT NOT NULL, type TEXT NOT NULL, bytes BLOB,
  PRIMARY KEY (thread_id, ns, channel, version)
);

CREATE TABLE writes (
  thread_id TEXT NOT NULL, ns TEXT NOT NULL, checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL, idx INTEGER NOT NULL,
  task_path TEXT NOT NULL, channel TEXT NOT NULL, type TEXT NOT NULL, bytes BLOB,
  PRIMARY KEY (thread_id, ns, checkpoint_id, task_id, idx)
);

CREATE TABLE frames (
  run_id TEXT NOT NULL, seq INTEGER NOT NULL, thread_id TEXT NOT NULL, id TEXT NOT NULL, event TEXT NOT NULL, data TEXT NOT NULL,
  PRIMARY KEY (run_id, seq)
) WITHOUT ROWID;
CREATE INDEX frames_thread ON frames (thread_id);

-- path is the namespace with every label ended by U+001F, so that prefixes match whole labels.
CREATE TABLE items (
  path TEXT NOT NULL, key TEXT NOT NULL, namespace TEXT NOT NULL, value TEXT NOT NULL, created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL, ttl REAL, expires_at INTEGER, PRIMARY KEY (path, key)
);
CREATE INDEX items_expiry ON items (expires_at) WHERE expires_at IS NOT NULL;
