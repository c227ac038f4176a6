-- The time in which a memory held. Without valid_from, it held from created_at on; without valid_to, it still holds.
ALTER TABLE memories ADD COLUMN valid_from TIMESTAMP;
ALTER TABLE memories ADD COLUMN valid_to TIMESTAMP;
ALTER TABLE archive ADD COLUMN valid_from TIMESTAMP;
ALTER TABLE archive ADD COLUMN valid_to TIMESTAMP;

-- A superseded memory held until the creation of the one that superseded it, or until the command if that one is gone.
-- If it was created later than that, because a correction restored an earlier memory, it held at no time.
CREATE TEMP TABLE endings AS
SELECT
    superseded.user_id,
    superseded.id,
    coalesce(
        successors.created_at,
        (
            SELECT max(history.occurred_at)
            FROM history
            WHERE history.event = 'superseded'
            AND history.user_id = superseded.user_id AND history.memory_id = superseded.id
        ),
        superseded.last_accessed
    ) AS ended_at
FROM (
    SELECT user_id, id, superseded_by, last_accessed FROM memories WHERE superseded_by IS NOT NULL
    UNION ALL
    SELECT user_id, id, superseded_by, last_accessed FROM archive WHERE superseded_by IS NOT NULL
) AS superseded
LEFT JOIN (
    SELECT user_id, id, created_at FROM memories UNION ALL SELECT user_id, id, created_at FROM archive
) AS successors
ON successors.user_id = superseded.user_id AND successors.id = superseded.superseded_by;
UPDATE memories
SET valid_to = ended_at, valid_from = CASE WHEN ended_at <= created_at THEN ended_at END
FROM endings WHERE memories.user_id = endings.user_id AND memories.id = endings.id;
UPDATE archive
SET valid_to = ended_at, valid_from = CASE WHEN ended_at <= created_at THEN ended_at END
FROM endings WHERE archive.user_id = endings.user_id AND archive.id = endings.id;
DROP TABLE endings;
