-- The event is before this offset of the log. Present rows get the position plus 1,024: a group has at most so many
-- records, and the newest one may have been incomplete. NULL: the offset is unknown, and the row stays.
ALTER TABLE applied ADD COLUMN log_end BIGINT;
UPDATE applied SET log_end = (SELECT cast(value AS BIGINT) + 1024 FROM shard_info WHERE key = 'position');

-- Offsets up to which all events were applied at some moment, each with the digest of the record before it. `applied`
-- keeps no rows up to the offset with `low`.
CREATE TABLE watermarks (
    log_offset BIGINT NOT NULL,
    digest VARCHAR NOT NULL,
    noted_at TIMESTAMP NOT NULL,
    low BOOLEAN NOT NULL
);

-- When a near-copy was said: history also has this, but is not kept for ever.
ALTER TABLE merged ADD COLUMN said_at TIMESTAMP;
UPDATE merged SET said_at = (
    SELECT max(try_cast(replace(details ->> 'said_at', 'Z', '') AS TIMESTAMP))
    FROM history
    WHERE history.event = 'merged' AND history.user_id = merged.user_id
    AND history.details ->> 'memory_id' = cast(merged.memory_id AS VARCHAR)
);
