"""Shards of processes that are gone."""

from __future__ import annotations

from tables.memories.shard import Shard


def died(shard: Shard) -> None:
    """Close a shard's files, as the end of its process does: nothing is saved any more."""
    shard.rows.close()
    shard._catalog.close()
