"""All code that talks to Kafka: it reads, produces and commits records, and writes changelogs."""
