-- +goose Up
-- Until when somebody follows the thread's stream: all frames of its runs are kept.
ALTER TABLE threads ADD COLUMN followed_until BIGINT NOT NULL DEFAULT 0;

-- position orders the ids of frames: milliseconds * 2^20 + count.
ALTER TABLE frames ADD COLUMN position BIGINT NOT NULL DEFAULT 0;
UPDATE frames SET position = CAST('0' || split_part(id, '-', 1) AS BIGINT) * 1048576
  + least(CAST('0' || split_part(id, '-', 2) AS BIGINT), 1048575);
DROP INDEX frames_thread;
CREATE INDEX frames_thread ON frames (thread_id, position);

-- fields is what a put said of indexing: a JSON list of paths, false, or null for the configuration's fields.
-- indexed names the index that the item's vectors were made for; '' = none.
ALTER TABLE items ADD COLUMN fields TEXT COLLATE "C" NOT NULL DEFAULT 'null';
ALTER TABLE items ADD COLUMN indexed TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX items_indexed ON items (indexed, path, key) WHERE fields <> 'false';

-- Unit vectors of single-precision floats; field is the path they were made from. The extension pgvector, where there is
-- one, computes with them; without it the server does.
CREATE TABLE vectors (
  path TEXT COLLATE "C" NOT NULL, key TEXT COLLATE "C" NOT NULL, field TEXT COLLATE "C" NOT NULL, vector REAL[] NOT NULL,
  PRIMARY KEY (path, key, field), FOREIGN KEY (path, key) REFERENCES items (path, key) ON DELETE CASCADE
);
