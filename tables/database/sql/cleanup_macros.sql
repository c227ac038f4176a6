-- The last millisecond before a memory's score falls below `cold`, if it is not accessed: by the formula, not by a
-- recompute. If the importance is below `cold` already, the last access; null if the score stays above. Times are
-- epoch ms.
CREATE OR REPLACE TEMP MACRO deprecated_since(importance, pinned, last_accessed, cold, fresh_days, half_life_days) AS
    CASE
        WHEN importance < cold THEN last_accessed
        WHEN pinned OR cold = 0 THEN NULL
        ELSE last_accessed + floor(
            (fresh_days + half_life_of(importance, half_life_days) * log2(importance / cold)) * 86400000.0
        )
    END;

-- Why cleanup never touches a memory, archived or not; null if it may. `tags` in the metadata: a list, or one tag.
CREATE OR REPLACE TEMP MACRO untouchable(pinned, user_id, id, meta, users, ids, tags) AS
    CASE
        WHEN pinned THEN 'pinned'
        WHEN list_contains(cast(users AS VARCHAR[]), user_id)
            OR list_contains(cast(ids AS UUID[]), id)
            OR len(tags) > 0 AND list_has_any(
                coalesce(try_cast(meta -> '$.tags' AS VARCHAR[]), [meta ->> '$.tags']), cast(tags AS VARCHAR[])
            )
        THEN 'whitelist'
    END;
