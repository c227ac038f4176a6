-- The offset up to which the log's events are applied: inserted here, so that each batch only updates it.
INSERT OR IGNORE INTO shard_info VALUES ('position', '0');
