"""The API of mem0's platform: `MemoryService` answers the requests of mem0's `MemoryClient`.

Ten routes serve the client's usual methods, and one route serves `delete_users`. `docs/migrating-from-mem0.md`
describes each route. Both APIs use the same data: each finds the memories that the other has written.
"""
