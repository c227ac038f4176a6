"""Whether the topics are what they must be, and stay it."""
