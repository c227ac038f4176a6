ALTER TABLE memories ADD COLUMN superseded_by UUID;

-- Memories that only the archive's own search finds. `vector` has the dimension of the shard's model.
CREATE TABLE archive (
    seq BIGINT NOT NULL,
    id UUID NOT NULL,
    user_id VARCHAR NOT NULL,
    session_id VARCHAR,
    agent_id VARCHAR,
    text VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    message_ids VARCHAR[] NOT NULL,
    importance DOUBLE NOT NULL,
    created_at TIMESTAMP NOT NULL,
    last_accessed TIMESTAMP NOT NULL,
    access_count BIGINT NOT NULL,
    state VARCHAR NOT NULL,
    pinned BOOLEAN NOT NULL,
    summary_of UUID[],
    summarized_by UUID,
    expires_at TIMESTAMP,
    meta JSON NOT NULL,
    superseded_by UUID,
    archived_at TIMESTAMP NOT NULL,
    reason VARCHAR NOT NULL,
    vector FLOAT[] NOT NULL
);

-- Changes of a memory since it was made; `details` has its former value.
CREATE TABLE history (
    memory_id UUID NOT NULL,
    user_id VARCHAR NOT NULL,
    occurred_at TIMESTAMP NOT NULL,
    event VARCHAR NOT NULL,
    details JSON NOT NULL
);

-- Near-copies, and the memory into which each was merged.
CREATE TABLE merged (memory_id UUID NOT NULL, user_id VARCHAR NOT NULL, into_id UUID NOT NULL);

-- Each number is given once, so an outdated file of vectors never confuses two memories.
INSERT INTO shard_info SELECT 'next_seq', coalesce(max(seq), 0) + 1 FROM memories;
