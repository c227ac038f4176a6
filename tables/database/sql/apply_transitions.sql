UPDATE memories
SET
    state = to_state,
    meta = CASE
        -- The first change is appended to the text, which takes a fifth of the time of reading it as JSON; most of
        -- the memories that a first recompute changes have none. Texts are written compactly, and by us alone.
        WHEN NOT contains(meta, '"transitions"') AND meta <> '{}'
            THEN left(meta, -1) || ',"transitions":['
                || json_object('at', $at, 'from', from_state, 'to', to_state, 'score', shown_score(score)) || ']}'
        ELSE json_merge_patch(
            meta,
            json_object(
                'transitions',
                (
                    coalesce(try_cast(meta -> '$.transitions' AS JSON[]), [])
                    || [json_object('at', $at, 'from', from_state, 'to', to_state, 'score', shown_score(score))]
                )[-20:]
            )
        )
    END
FROM looked_at
WHERE memories.rowid = place  -- nothing was written since they were looked at
AND from_state <> to_state
