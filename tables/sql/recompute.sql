-- The memories whose state at $now is not the stored one.
CREATE OR REPLACE TEMP TABLE changing AS
SELECT * FROM (
    SELECT seq, id, user_id, state AS from_state, state_of(score, $active, $cold) AS to_state, score
    FROM (
        SELECT
            seq, id, user_id, state,
            score_of(importance, pinned, epoch_ms(last_accessed), $now, $fresh_days, $half_life_days) AS score
        FROM memories
    )
)
WHERE from_state <> to_state
