"""The API of mem0's platform: requests of its `MemoryClient`, answered by the use cases of `MemoryService`.

Ten routes serve the client's everyday methods, and one `delete_users`: `docs/migrating-from-mem0.md` describes each.
No data is kept only for mem0: both APIs find what either has written.
"""
