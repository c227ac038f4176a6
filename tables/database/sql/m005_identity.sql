-- Identity of the shard: index files of another shard, or of a state that this one never had, are recreated.
INSERT INTO shard_info VALUES ('identity', cast(uuid() AS VARCHAR));

-- Count of changes to memories: the search files have the same count, and are recreated if it differs.
INSERT INTO shard_info VALUES ('changes', '0');
