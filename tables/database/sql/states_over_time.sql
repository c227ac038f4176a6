-- A moment as in the columns: in UTC, without a zone. DuckDB would compare one with a zone, such as now(), in the
-- session's zone.
CREATE OR REPLACE TEMP MACRO utc(moment) AS make_timestamp(epoch_us(moment));

-- Memories by state at the end of each UTC day, from the day of `first_moment` to that of `last_moment`, which ends
-- there. A memory counts from its created_at, in its present state with the changes since that day undone, and in no
-- state while it is archived; a removed memory counts between its known changes.
CREATE OR REPLACE TEMP MACRO states_between(first_moment, last_moment) AS TABLE
    WITH changes AS (
        SELECT
            memory_id,
            from_state,
            occurred_at,
            lag(occurred_at) OVER (PARTITION BY memory_id ORDER BY occurred_at, rowid) AS changed_before
        FROM transitions
    ),
    spans AS (
        SELECT
            from_state AS state,
            greatest(changed_before, created_at) AS since,
            CASE WHEN occurred_at <= utc(last_moment) THEN cast(occurred_at AS DATE) END AS last_day
        FROM changes
        LEFT JOIN (
            SELECT id, created_at FROM memories
            UNION ALL
            SELECT id, created_at FROM archive
        ) ON id = memory_id
        UNION ALL
        SELECT state, greatest(changed, created_at), NULL
        FROM memories
        LEFT JOIN (SELECT memory_id AS id, max(occurred_at) AS changed FROM transitions GROUP BY ALL) USING (id)
    ),
    counted AS (
        SELECT state, greatest(cast(since AS DATE), cast(utc(first_moment) AS DATE)) AS first_day, last_day
        FROM spans
        WHERE since <= utc(last_moment) AND (last_day IS NULL OR last_day > cast(since AS DATE))
    ),
    moves AS (
        SELECT day, state, sum(number) AS number
        FROM (
            SELECT first_day AS day, state, 1 AS number FROM counted
            UNION ALL
            SELECT greatest(last_day, first_day), state, -1 FROM counted WHERE last_day IS NOT NULL
        )
        GROUP BY ALL
    )
    SELECT day, state, cast(sum(coalesce(number, 0)) OVER (PARTITION BY state ORDER BY day) AS BIGINT) AS memories
    FROM (
        SELECT cast(unnest(generate_series(date_trunc('day', utc(first_moment)), utc(last_moment), INTERVAL 1 DAY)) AS DATE) AS day
    )
    CROSS JOIN (VALUES ('active'), ('cold'), ('deprecated')) AS names(state)
    LEFT JOIN moves USING (day, state)
    ORDER BY day, state;
