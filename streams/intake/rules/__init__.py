"""Rules of intake: pure functions of a session's records and its state."""
