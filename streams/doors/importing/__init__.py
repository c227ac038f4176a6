"""Convert files of users, with chats or memories in several formats, to records for Kafka. No broker is needed."""
