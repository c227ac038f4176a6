-- An event's id belongs to its user. NULL: noted by an older version, and applied for all users.
ALTER TABLE applied ADD COLUMN user_id VARCHAR;
