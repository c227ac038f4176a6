-- The memories in `due` (seq): their states as stored and as of $now, when each can change next, and the reason of a
-- change now: age lowers the state; an access, a pin, or the cause in $warmed_by raises it.
CREATE OR REPLACE TEMP TABLE looked_at AS
SELECT
    place, seq, id, user_id, from_state, to_state, score,
    leaves_at(to_state, importance, pinned, last_accessed, $active, $cold, $fresh_days, $half_life_days) AS due_at,
    CASE
        WHEN from_state = to_state THEN NULL
        WHEN to_state = 'deprecated' OR from_state = 'active' THEN 'decay'
        WHEN $warmed_by IS NOT NULL THEN $warmed_by
        WHEN pinned
            AND state_of(
                score_of(importance, false, last_accessed, $now, $fresh_days, $half_life_days), $active, $cold
            ) <> to_state
            THEN 'pin'
        ELSE 'access'
    END AS reason
FROM (
    SELECT *, state_of(score, $active, $cold) AS to_state
    FROM (
        SELECT
            rowid AS place, seq, id, user_id, state AS from_state, importance, pinned,
            ms_of(last_accessed) AS last_accessed,
            score_of(importance, pinned, ms_of(last_accessed), $now, $fresh_days, $half_life_days) AS score
        FROM memories
        WHERE seq IN (SELECT seq FROM due)
    )
)
