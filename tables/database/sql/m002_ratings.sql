-- What a model answered when it was asked about an exchange: a replay asks nobody twice.
CREATE TABLE ratings (
    memory_id UUID NOT NULL,
    model VARCHAR NOT NULL,
    value UTINYINT NOT NULL,
    rated_at TIMESTAMP NOT NULL
);
