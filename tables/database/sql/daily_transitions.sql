-- Changes of state by UTC day and pair, from $since up to $now.
SELECT cast(occurred_at AS DATE) AS day, from_state, to_state, count(*) AS transitions
FROM transitions
WHERE occurred_at >= make_timestamp_ms($since) AND occurred_at <= make_timestamp_ms($now)
GROUP BY ALL
