-- The analysts' copy: views over `memories`, `links`, `transitions` and `copy_info` (docs/analytics.md).

-- Each memory's score and state at any moment: FROM scores_at(TIMESTAMP '2026-03-01').
CREATE MACRO scores_at(moment) AS TABLE
    SELECT * EXCLUDE (active, cold) REPLACE (state_of(score, active, cold) AS state)
    FROM (
        SELECT
            memories.*,
            score_of(
                importance, pinned, epoch_ms(last_accessed), epoch_ms(moment), fresh_days, half_life_days
            ) AS score,
            copy_info.active,
            copy_info.cold
        FROM memories, copy_info
    );

-- The memories that held at a moment, including those that were superseded later: FROM held_at(TIMESTAMP '2026-03-01').
-- As in schemas/memories.py; a test compares the two.
CREATE MACRO held_at(moment) AS TABLE
    SELECT *
    FROM memories
    WHERE
        (valid_to IS NULL OR epoch_us(moment) < epoch_us(valid_to))
        AND epoch_us(moment) >= CASE
            WHEN valid_from IS NOT NULL THEN epoch_us(valid_from)
            WHEN valid_to <= created_at THEN 0
            ELSE epoch_us(created_at)
        END;

-- The memories whose texts speak of a time in a period:
-- FROM speaking_of(TIMESTAMP '2026-03-01', TIMESTAMP '2026-04-01').
CREATE MACRO speaking_of(first_moment, last_moment) AS TABLE
    SELECT *
    FROM memories
    WHERE (partition, id) IN (
        SELECT (partition, memory_id)
        FROM times
        WHERE epoch_us(starts_at) < epoch_us(last_moment) AND epoch_us(first_moment) < epoch_us(ends_at)
    );

-- Each memory with its score and state as of copy_info.as_of.
CREATE VIEW scores AS
SELECT * EXCLUDE (active, cold) REPLACE (state_of(score, active, cold) AS state)
FROM (
    SELECT
        memories.*,
        score_of(importance, pinned, epoch_ms(last_accessed), epoch_ms(as_of), fresh_days, half_life_days) AS score,
        copy_info.active,
        copy_info.cold
    FROM memories, copy_info
);

CREATE VIEW states AS
SELECT
    state,
    count(id) AS memories,
    coalesce(round(100 * count(id) / (SELECT nullif(count(*), 0) FROM memories), 2), 0) AS percent
FROM (VALUES ('active'), ('cold'), ('deprecated')) AS names(state)
LEFT JOIN scores USING (state)
GROUP BY state
ORDER BY state;

-- By day up to copy_info.as_of, as far as the recorded changes go back (docs/analytics.md).
CREATE VIEW states_over_time AS
SELECT
    *,
    coalesce(round(100 * memories / nullif(sum(memories) OVER (PARTITION BY day), 0), 2), 0) AS percent
FROM states_between((SELECT min(created_at) FROM memories), (SELECT as_of FROM copy_info))
ORDER BY day, state;

CREATE VIEW daily_transitions AS
SELECT cast(occurred_at AS DATE) AS day, from_state, to_state, count(*) AS transitions
FROM transitions
GROUP BY ALL
ORDER BY ALL;

-- Each pair since the day of the first change; daily_percent is of the present number of memories.
CREATE VIEW transition_rates AS
SELECT
    from_state,
    to_state,
    transitions,
    round(transitions / days, 2) AS per_day,
    coalesce(round(100 * transitions / days / (SELECT nullif(count(*), 0) FROM memories), 2), 0) AS daily_percent
FROM (
    SELECT from_state, to_state, cast(sum(transitions) AS BIGINT) AS transitions
    FROM daily_transitions
    GROUP BY ALL
), (
    SELECT greatest(1, date_diff('day', min(day), cast(max(as_of) AS DATE)) + 1) AS days
    FROM daily_transitions, copy_info
)
ORDER BY transitions DESC, from_state, to_state;

CREATE VIEW score_points AS
SELECT cast(floor(score) AS INTEGER) AS point, count(*) AS memories
FROM scores
GROUP BY ALL;
