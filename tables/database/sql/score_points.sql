-- Memories by whole points of their score as of $now.
SELECT cast(floor(score) AS INTEGER) AS point, count(*) AS memories
FROM (
    SELECT score_of(importance, pinned, ms_of(last_accessed), $now, $fresh_days, $half_life_days) AS score
    FROM memories
)
GROUP BY ALL
