-- An event's id belongs to its user. NULL: it was noted before that, and is in for everybody.
ALTER TABLE applied ADD COLUMN user_id VARCHAR;
