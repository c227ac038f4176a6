-- The users whose memories were made or read last, with how many memories each has.
SELECT user_id, count(*) AS memories, epoch_ms(max(last_accessed)) AS newest
FROM memories
GROUP BY user_id
ORDER BY newest DESC, user_id
LIMIT $most
