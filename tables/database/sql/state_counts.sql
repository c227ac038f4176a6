-- Memories by state as of $now.
SELECT state_of(score, $active, $cold) AS state, count(*) AS memories
FROM (
    SELECT score_of(importance, pinned, ms_of(last_accessed), $now, $fresh_days, $half_life_days) AS score
    FROM memories
)
GROUP BY ALL
