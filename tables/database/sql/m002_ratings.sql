-- A model's answers about exchanges, so that a replay does not ask it again.
CREATE TABLE ratings (
    memory_id UUID NOT NULL,
    model VARCHAR NOT NULL,
    value UTINYINT NOT NULL,
    rated_at TIMESTAMP NOT NULL
);
