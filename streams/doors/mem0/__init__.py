"""The API of mem0's platform: `MemoryService` answers the requests of mem0's `MemoryClient`.

Ten routes serve the client's usual methods, and one route serves `delete_users`. `docs/migrating-from-mem0.md`
describes each route. This API and Siltstone's own API use the same data, so each finds the memories that were written
by the other.
"""
