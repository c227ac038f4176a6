"""Everything that knows Kafka: reading, producing and committing records, and keeping changelogs."""
