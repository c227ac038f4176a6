-- The newest time of the user's data when all of it was forgotten: if the clock of `forgotten_at` was ahead, the
-- tombstone reaches only up to here. Null for single memories, and in older rows.
ALTER TABLE tombstones ADD COLUMN seen_at TIMESTAMP;
