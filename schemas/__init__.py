"""What things look like: records, memories, settings, errors and topic names. Imports nothing of ours."""
