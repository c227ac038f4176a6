"""The types that all packages share: records, memories, settings, errors, topic names. Imports no other package."""
