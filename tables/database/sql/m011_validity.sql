-- The time in which a memory held. Without valid_from, it held from created_at on; without valid_to, it still holds.
ALTER TABLE memories ADD COLUMN valid_from TIMESTAMP;
ALTER TABLE memories ADD COLUMN valid_to TIMESTAMP;
ALTER TABLE archive ADD COLUMN valid_from TIMESTAMP;
ALTER TABLE archive ADD COLUMN valid_to TIMESTAMP;

-- A superseded memory held until the creation of the one that superseded it.
CREATE TEMP TABLE successors AS
SELECT user_id, id, created_at FROM memories UNION ALL SELECT user_id, id, created_at FROM archive;
UPDATE memories SET valid_to = successors.created_at FROM successors
WHERE memories.superseded_by = successors.id AND memories.user_id = successors.user_id;
UPDATE archive SET valid_to = successors.created_at FROM successors
WHERE archive.superseded_by = successors.id AND archive.user_id = successors.user_id;
DROP TABLE successors;
