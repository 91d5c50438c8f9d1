-- +goose Up
-- What SQLite's json_each is: the elements of a JSON array with their positions. jsonb knows no U+0000.
-- +goose StatementBegin
CREATE FUNCTION json_each(list TEXT, OUT key BIGINT, OUT value JSONB) RETURNS SETOF RECORD LANGUAGE sql IMMUTABLE ROWS 10 AS $$
  SELECT place - 1, element FROM jsonb_array_elements(replace(list, '\u0000', '\ufffd')::jsonb) WITH ORDINALITY AS t(element, place)
$$;
-- +goose StatementEnd

-- The document, or NULL where the text is none that jsonb can hold: such a one contains nothing.
-- +goose StatementBegin
CREATE FUNCTION slipway_json(doc TEXT) RETURNS JSONB LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
  RETURN replace(doc, '\u0000', '\ufffd')::jsonb;
EXCEPTION WHEN OTHERS THEN
  RETURN NULL;
END $$;
-- +goose StatementEnd

-- Whether a value satisfies a filter of the store (agent-server reference 15); query.Matches says the same in Go.
-- +goose StatementBegin
CREATE FUNCTION slipway_matches(value JSONB, filter JSONB) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  name TEXT;
  want JSONB;
  numbers BOOLEAN;
BEGIN
  IF value IS NULL OR filter IS NULL THEN
    RETURN FALSE;
  END IF;
  IF jsonb_typeof(filter) <> 'object' THEN
    RETURN value = filter;
  END IF;
  FOR name, want IN SELECT * FROM jsonb_each(filter) LOOP
    IF left(name, 1) = '$' THEN
      numbers := jsonb_typeof(value) = 'number' AND jsonb_typeof(want) = 'number';
      IF NOT (CASE name
        WHEN '$eq' THEN value = want
        WHEN '$ne' THEN value <> want
        WHEN '$gt' THEN numbers AND value > want
        WHEN '$gte' THEN numbers AND value >= want
        WHEN '$lt' THEN numbers AND value < want
        WHEN '$lte' THEN numbers AND value <= want
        ELSE FALSE END)
      THEN
        RETURN FALSE;
      END IF;
    ELSIF jsonb_typeof(value) <> 'object' THEN
      RETURN FALSE;
    ELSIF NOT value ? name AND NOT (jsonb_typeof(want) = 'object' AND want ? '$ne') THEN
      RETURN FALSE;
    ELSIF NOT slipway_matches(coalesce(value -> name, 'null'), want) THEN
      RETURN FALSE;
    END IF;
  END LOOP;
  RETURN TRUE;
END $$;
-- +goose StatementEnd

CREATE TABLE assistants (
  id TEXT COLLATE "C" PRIMARY KEY, graph_id TEXT COLLATE "C" NOT NULL, config TEXT COLLATE "C" NOT NULL, context TEXT COLLATE "C" NOT NULL, metadata TEXT COLLATE "C" NOT NULL,
  version BIGINT NOT NULL, name TEXT COLLATE "C" NOT NULL, description TEXT COLLATE "C", created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL,
  system BIGINT NOT NULL CHECK (system IN (0, 1))
);
CREATE INDEX assistants_created ON assistants (created_at);

CREATE TABLE threads (
  id TEXT COLLATE "C" PRIMARY KEY, metadata TEXT COLLATE "C" NOT NULL, config TEXT COLLATE "C" NOT NULL,
  status TEXT COLLATE "C" NOT NULL CHECK (status IN ('idle', 'busy', 'interrupted', 'error')),
  base TEXT COLLATE "C" NOT NULL CHECK (base IN ('idle', 'interrupted', 'error')),
  language TEXT COLLATE "C" NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, state_updated_at BIGINT NOT NULL,
  error TEXT COLLATE "C", interrupts TEXT COLLATE "C" NOT NULL, vals TEXT COLLATE "C", state TEXT COLLATE "C"
);
CREATE INDEX threads_updated ON threads (updated_at);
CREATE INDEX threads_created ON threads (created_at);
CREATE INDEX threads_status ON threads (status, updated_at);

CREATE TABLE runs (
  id TEXT COLLATE "C" PRIMARY KEY, thread_id TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
  assistant_id TEXT COLLATE "C" NOT NULL, graph_id TEXT COLLATE "C" NOT NULL,
  status TEXT COLLATE "C" NOT NULL CHECK (status IN ('pending', 'running', 'success', 'error', 'timeout', 'interrupted')),
  multitask TEXT COLLATE "C" NOT NULL, metadata TEXT COLLATE "C" NOT NULL, kwargs TEXT COLLATE "C" NOT NULL, temporary BIGINT NOT NULL,
  created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, started_at BIGINT NOT NULL, ended_at BIGINT NOT NULL,
  failure TEXT COLLATE "C", epoch BIGINT NOT NULL, attempt BIGINT NOT NULL, instance TEXT COLLATE "C" NOT NULL, checkpointed BIGINT NOT NULL,
  cancel_action TEXT COLLATE "C" NOT NULL CHECK (cancel_action IN ('', 'interrupt', 'rollback')), cancel_reason TEXT COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX runs_one_running ON runs (thread_id) WHERE status = 'running';
CREATE INDEX runs_pending ON runs (created_at, id) WHERE status = 'pending';
CREATE INDEX runs_instance ON runs (instance) WHERE status = 'running';
CREATE INDEX runs_thread ON runs (thread_id, created_at, id);
CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at > 0;

-- What the thread was before a run first started; rollback puts it back.
CREATE TABLE befores (
  run_id TEXT COLLATE "C" PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE, base TEXT COLLATE "C" NOT NULL, language TEXT COLLATE "C" NOT NULL,
  state_updated_at BIGINT NOT NULL, error TEXT COLLATE "C", interrupts TEXT COLLATE "C" NOT NULL, vals TEXT COLLATE "C", state TEXT COLLATE "C"
);

-- No foreign key to threads: savers may be asked for threads that no client has made.
CREATE TABLE checkpoints (
  thread_id TEXT COLLATE "C" NOT NULL, ns TEXT COLLATE "C" NOT NULL, id TEXT COLLATE "C" NOT NULL, parent_id TEXT COLLATE "C" NOT NULL, run_id TEXT COLLATE "C" NOT NULL,
  language TEXT COLLATE "C" NOT NULL, metadata TEXT COLLATE "C" NOT NULL, header TEXT COLLATE "C" NOT NULL, PRIMARY KEY (thread_id, ns, id)
);
CREATE INDEX checkpoints_run ON checkpoints (run_id) WHERE run_id <> '';
CREATE INDEX checkpoints_id ON checkpoints (thread_id, id);

CREATE TABLE blobs (
  thread_id TEXT COLLATE "C" NOT NULL, ns TEXT COLLATE "C" NOT NULL, channel TEXT COLLATE "C" NOT NULL, version TEXT COLLATE "C" NOT NULL, type TEXT COLLATE "C" NOT NULL, bytes BYTEA,
  PRIMARY KEY (thread_id, ns, channel, version)
);

CREATE TABLE writes (
  thread_id TEXT COLLATE "C" NOT NULL, ns TEXT COLLATE "C" NOT NULL, checkpoint_id TEXT COLLATE "C" NOT NULL, task_id TEXT COLLATE "C" NOT NULL, idx BIGINT NOT NULL,
  task_path TEXT COLLATE "C" NOT NULL, channel TEXT COLLATE "C" NOT NULL, type TEXT COLLATE "C" NOT NULL, bytes BYTEA,
  PRIMARY KEY (thread_id, ns, checkpoint_id, task_id, idx)
);

CREATE TABLE frames (
  run_id TEXT COLLATE "C" NOT NULL, seq BIGINT NOT NULL, thread_id TEXT COLLATE "C" NOT NULL, id TEXT COLLATE "C" NOT NULL, event TEXT COLLATE "C" NOT NULL, data TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (run_id, seq)
);
CREATE INDEX frames_thread ON frames (thread_id);

-- path is the namespace with every label ended by U+001F, so that prefixes match whole labels.
CREATE TABLE items (
  path TEXT COLLATE "C" NOT NULL, key TEXT COLLATE "C" NOT NULL, namespace TEXT COLLATE "C" NOT NULL, value TEXT COLLATE "C" NOT NULL, created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL, ttl DOUBLE PRECISION, expires_at BIGINT, PRIMARY KEY (path, key)
);
CREATE INDEX items_expiry ON items (expires_at) WHERE expires_at IS NOT NULL;
