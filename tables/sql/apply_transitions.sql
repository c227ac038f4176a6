UPDATE memories
SET
    state = changing.to_state,
    meta = json_merge_patch(
        meta,
        json_object(
            'transitions',
            (
                coalesce(try_cast(meta -> '$.transitions' AS JSON[]), [])
                || [json_object('at', $at, 'from', changing.from_state, 'to', changing.to_state, 'score', round(changing.score, 2))]
            )[-20:]
        )
    )
FROM changing
WHERE memories.seq = changing.seq
