-- +goose Up
-- ttl_strategy: '' without a TTL; expires_at: 0 = not armed.
ALTER TABLE threads ADD COLUMN ttl_strategy TEXT COLLATE "C" NOT NULL DEFAULT '' CHECK (ttl_strategy IN ('', 'delete', 'keep_latest'));
ALTER TABLE threads ADD COLUMN ttl_minutes DOUBLE PRECISION NOT NULL DEFAULT 0;
ALTER TABLE threads ADD COLUMN expires_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX threads_expiry ON threads (expires_at) WHERE expires_at > 0;
