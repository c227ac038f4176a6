"""Everything that knows Kafka: how records are read, produced and committed, and how changelogs are kept."""
