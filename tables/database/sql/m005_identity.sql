-- Which shard this is: a file of vectors that names another one, or a state that this one never had, is recreated.
INSERT INTO shard_info VALUES ('identity', cast(uuid() AS VARCHAR));

-- How often the memories were changed: the files for searching count along, and are recreated where they disagree.
INSERT INTO shard_info VALUES ('changes', '0');
