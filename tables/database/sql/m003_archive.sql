ALTER TABLE memories ADD COLUMN superseded_by UUID;

-- Memories out of every search but the archive's own. `vector` has the dimension of the shard's model.
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

-- What was done to a memory since it was made; `details` says what it was before.
CREATE TABLE history (
    memory_id UUID NOT NULL,
    user_id VARCHAR NOT NULL,
    occurred_at TIMESTAMP NOT NULL,
    event VARCHAR NOT NULL,
    details JSON NOT NULL
);

-- Near-copies that were not kept as memories of their own, and the memory that stands for each.
CREATE TABLE merged (memory_id UUID NOT NULL, user_id VARCHAR NOT NULL, into_id UUID NOT NULL);

-- A number is given once: a file of vectors that is behind never takes one memory for another.
INSERT INTO shard_info SELECT 'next_seq', coalesce(max(seq), 0) + 1 FROM memories;
