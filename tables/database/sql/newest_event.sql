-- Epoch ms of the newest creation, access or change of state; 0 in an empty shard.
SELECT coalesce(max(epoch_ms(moment)), 0)
FROM (
    SELECT max(last_accessed) AS moment FROM memories
    UNION ALL
    SELECT max(occurred_at) FROM transitions
)
