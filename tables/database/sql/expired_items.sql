-- Items that expire by $now (epoch ms), the earliest first, at most $most.
SELECT user_id, id, epoch_ms(expires_at)
FROM (
    SELECT user_id, id, try_cast(replace(meta ->> '$.stored.expires_at', 'Z', '') AS TIMESTAMP) AS expires_at
    FROM memories
    WHERE kind = 'item'
)
WHERE expires_at <= make_timestamp_ms($now)
ORDER BY expires_at, id
LIMIT $most
