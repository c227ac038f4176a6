-- The memories that are `due` (seq): their states as stored and as of $now, and when each can change next.
CREATE OR REPLACE TEMP TABLE looked_at AS
SELECT
    place, seq, id, user_id, from_state, to_state, score,
    leaves_at(to_state, importance, pinned, last_accessed, $active, $cold, $fresh_days, $half_life_days) AS due_at
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
