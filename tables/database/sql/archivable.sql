-- Memories deprecated, or summed up, for longer than $after_days as of $now, and why a memory stays all the same.
-- `since` is when that began.
CREATE OR REPLACE TEMP TABLE candidates AS
WITH aged AS (
    SELECT
        seq,
        id,
        user_id,
        importance,
        pinned,
        epoch_ms(last_accessed) AS last_accessed,
        deprecated_since(importance, pinned, epoch_ms(last_accessed), $cold, $fresh_days, $half_life_days)
            AS deprecated,
        summarized
    FROM memories
    LEFT JOIN (
        SELECT id AS summarized_by, epoch_ms(created_at) AS summarized FROM memories WHERE summary_of IS NOT NULL
    ) USING (summarized_by)
    WHERE $user_id IS NULL OR user_id = $user_id
),
old AS (
    SELECT *, least(deprecated, summarized) AS since
    FROM aged
    WHERE $now - least(deprecated, summarized) > $after_days * 86400000.0
),
ends AS (
    SELECT source_id AS id, target_id AS other FROM links WHERE weight >= $link_weight
    UNION ALL
    SELECT target_id, source_id FROM links WHERE weight >= $link_weight
),
linked AS (
    SELECT id FROM ends WHERE id IN (SELECT id FROM old) AND other IN (SELECT id FROM memories)
)
SELECT
    old.seq,
    cast(since AS BIGINT) AS since,
    score_of(old.importance, old.pinned, old.last_accessed, $now, $fresh_days, $half_life_days) AS score,
    CASE WHEN deprecated = since THEN 'deprecated' ELSE 'summarized' END AS cause,
    coalesce(
        untouchable(old.pinned, old.user_id, old.id, meta, $users, $ids, $tags),
        CASE
            WHEN old.id IN (SELECT id FROM linked) THEN 'link'
            WHEN $now - old.last_accessed <= $recent_access_days * 86400000.0 THEN 'recent access'
        END
    ) AS exemption
FROM old
JOIN memories USING (seq)
