UPDATE memories
SET
    state = to_state,
    meta = json_merge_patch(
        meta,
        json_object(
            'transitions',
            (
                coalesce(try_cast(meta -> '$.transitions' AS JSON[]), [])
                || [json_object('at', $at, 'from', from_state, 'to', to_state, 'score', round(score, 2))]
            )[-20:]
        )
    )
FROM looked_at
WHERE memories.rowid = place  -- nothing was written since they were looked at
AND from_state <> to_state
