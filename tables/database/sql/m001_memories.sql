-- Times are UTC. `seq` numbers the shard's memories and is their id in the FAISS index.
CREATE TABLE memories (
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
    meta JSON NOT NULL
);

CREATE TABLE links (
    user_id VARCHAR NOT NULL,
    source_id UUID NOT NULL,
    target_id UUID NOT NULL,
    kind VARCHAR NOT NULL,
    weight DOUBLE NOT NULL,
    created_at TIMESTAMP NOT NULL
);

CREATE TABLE transitions (
    memory_id UUID NOT NULL,
    user_id VARCHAR NOT NULL,
    from_state VARCHAR NOT NULL,
    to_state VARCHAR NOT NULL,
    score DOUBLE NOT NULL,
    occurred_at TIMESTAMP NOT NULL,
    reason VARCHAR NOT NULL,
    published BOOLEAN NOT NULL
);

-- Applied events: a redelivered or replayed one changes nothing.
CREATE TABLE applied (event_id UUID NOT NULL, applied_at TIMESTAMP NOT NULL);

-- Tombstones keep forgotten memories forgotten in a replay; a row without memory_id is for the whole user.
CREATE TABLE tombstones (user_id VARCHAR NOT NULL, memory_id UUID, forgotten_at TIMESTAMP NOT NULL);

CREATE TABLE shard_info (key VARCHAR PRIMARY KEY, value VARCHAR NOT NULL);
