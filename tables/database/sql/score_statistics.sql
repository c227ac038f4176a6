-- Statistics of scores, from `score_points` (point, memories): memories by whole points of their score.

-- Ten bins of ten points; 100 belongs to the last one.
CREATE VIEW score_histogram AS
SELECT
    bins.bin * 10 AS from_score,
    bins.bin * 10 + 10 AS to_score,
    cast(coalesce(sum(memories), 0) AS BIGINT) AS memories,
    coalesce(round(100 * sum(memories) / (SELECT nullif(sum(memories), 0) FROM score_points), 2), 0) AS percent
FROM range(10) AS bins(bin)
LEFT JOIN score_points ON least(point // 10, 9) = bins.bin
GROUP BY bins.bin
ORDER BY bins.bin;

-- A cluster: neighbouring bins that each hold more than an even share, a tenth of all memories.
CREATE VIEW score_clusters AS
SELECT
    min(from_score) AS from_score,
    max(to_score) AS to_score,
    cast(sum(memories) AS BIGINT) AS memories,
    round(100 * sum(memories) / (SELECT sum(memories) FROM score_points), 2) AS percent
FROM (
    SELECT *, from_score // 10 - row_number() OVER (ORDER BY from_score) AS run
    FROM score_histogram
    WHERE 10 * memories > (SELECT sum(memories) FROM score_points)
)
GROUP BY run
ORDER BY from_score;

-- Tukey's fences: 1.5 interquartile ranges below the first and above the third quartile, in whole points. A range
-- below 10 counts as 10; otherwise many equal scores would make outliers of all others.
CREATE VIEW score_fences AS
SELECT
    first_quartile,
    third_quartile,
    first_quartile - 1.5 * greatest(third_quartile - first_quartile, 10) AS low,
    third_quartile + 1.5 * greatest(third_quartile - first_quartile, 10) AS high
FROM (
    SELECT
        min(point) FILTER (4 * upto >= total) AS first_quartile,
        min(point) FILTER (4 * upto >= 3 * total) AS third_quartile
    FROM (
        SELECT point, sum(memories) OVER (ORDER BY point) AS upto, sum(memories) OVER () AS total
        FROM score_points
    )
);

-- Points outside of the fences, with their memories.
CREATE VIEW score_outliers AS
SELECT point, memories, CASE WHEN point < low THEN 'low' ELSE 'high' END AS side
FROM score_points, score_fences
WHERE point < low OR point > high
ORDER BY point;
