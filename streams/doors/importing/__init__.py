"""Convert files with chats or memories, in the formats of many services, to records. This needs no Kafka broker."""
