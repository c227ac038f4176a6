-- Memories archived for longer than $retention_days as of $now, and why a memory stays all the same.
CREATE OR REPLACE TEMP TABLE candidates AS
SELECT
    seq,
    epoch_ms(archived_at) AS since,
    score_of(importance, pinned, epoch_ms(last_accessed), $now, $fresh_days, $half_life_days) AS score,
    'archived' AS cause,
    untouchable(pinned, user_id, id, meta, $users, $ids, $tags) AS exemption
FROM archive
WHERE $now - epoch_ms(archived_at) > $retention_days * 86400000.0 AND ($user_id IS NULL OR user_id = $user_id)
