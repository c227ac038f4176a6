"""The dashboard: pages over `MemoryService` that show what a worker does, and what it remembers."""
