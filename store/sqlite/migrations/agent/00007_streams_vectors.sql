-- +goose Up
-- Until when somebody follows the thread's stream: all frames of its runs are kept.
ALTER TABLE threads ADD COLUMN followed_until INTEGER NOT NULL DEFAULT 0;

-- position orders the ids of frames: milliseconds * 2^20 + count.
ALTER TABLE frames ADD COLUMN position INTEGER NOT NULL DEFAULT 0;
UPDATE frames SET position = CAST(substr(id, 1, instr(id || '-', '-') - 1) AS INTEGER) * 1048576
  + min(CAST(substr(id, instr(id || '-', '-') + 1) AS INTEGER), 1048575);
DROP INDEX frames_thread;
CREATE INDEX frames_thread ON frames (thread_id, position);

-- fields is what a put said of indexing: a JSON list of paths, false, or null for the configuration's fields.
-- indexed names the index that the item's vectors were made for; '' = none.
ALTER TABLE items ADD COLUMN fields TEXT NOT NULL DEFAULT 'null';
ALTER TABLE items ADD COLUMN indexed TEXT NOT NULL DEFAULT '';
CREATE INDEX items_indexed ON items (indexed, path, key) WHERE fields <> 'false';

-- Unit vectors of single-precision floats, little-endian; field is the path they were made from.
CREATE TABLE vectors (
  path TEXT NOT NULL, key TEXT NOT NULL, field TEXT NOT NULL, vector BLOB NOT NULL,
  PRIMARY KEY (path, key, field), FOREIGN KEY (path, key) REFERENCES items (path, key) ON DELETE CASCADE
);
