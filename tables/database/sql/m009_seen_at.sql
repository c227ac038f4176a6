-- The newest moment that the shard knew of the user when everything of theirs was forgotten: where the clock that said
-- `forgotten_at` was ahead, that far the tombstone reaches. Null in those of single memories, and in older ones.
ALTER TABLE tombstones ADD COLUMN seen_at TIMESTAMP;
