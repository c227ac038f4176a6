"""What is decided on a session: pure functions of its records and its state."""
