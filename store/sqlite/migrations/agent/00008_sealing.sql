-- +goose Up
-- What is remembered of the encryption of this store: proof is a known text, sealed, and key the key as the application's
-- own handlers have encrypted it; NULL = it is elsewhere.
CREATE TABLE sealing (id INTEGER PRIMARY KEY CHECK (id = 1), proof BLOB NOT NULL, key TEXT);
