"""The wire of mem0's platform: what its `MemoryClient` sends, answered by the use cases of `MemoryService`.

Ten routes are those of the client's everyday methods, and one is for `delete_users`: `docs/migrating-from-mem0.md`
says what each does here. Nothing is kept for mem0 alone: what comes in by one wire is found by the other.
"""
