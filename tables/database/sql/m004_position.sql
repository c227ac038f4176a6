-- The offset up to which the log's events are in: there from the beginning, so that each batch updates it.
INSERT OR IGNORE INTO shard_info VALUES ('position', '0');
