UPDATE memories
SET
    state = to_state,
    meta = CASE
        -- Append the first change to the text: that takes a fifth of the time of reading it as JSON, and most of the
        -- memories that a first recompute changes have none. Only we write these texts, and compactly.
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
WHERE memories.rowid = place  -- nothing was written since `looked_at` was made
AND from_state <> to_state
