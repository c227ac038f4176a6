"""Storage of memories: shards and their embedding model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from zoneinfo import ZoneInfo

from schemas.settings import Settings
from streams.models.embedding.choice import embedder_of
from streams.models.embedding.embedding import Embedding
from streams.runtime.memory_shares import shares
from streams.shards.owned import OwnedShards


class Storage:
    """The shards in a folder. `copies` is the memory limit, in bytes, for the creation of an analysts' copy.

    `on_failure` is called if a shard cannot be opened.
    """

    def __init__(self, settings: Settings, folder: Path, on_failure: Callable[[BaseException, str], None]) -> None:
        memory = shares(settings.memory_limit)
        #: The model with which the worker starts.
        self.embedder = embedder_of(settings)
        self.copies = memory.copies
        self.shards = OwnedShards(
            folder,
            settings.long_term,
            settings.lifecycle,
            Embedding(self.embedder),
            on_failure=on_failure,
            memory=memory,
            updates=settings.memory.updates,
            zone=ZoneInfo(settings.agents.summary.timezone),
        )

    def start(self) -> None:
        """Start loading the embedding model."""
        self.shards.models.current.start()

    async def close(self) -> None:
        """Save and close the shards, then stop the embedding models."""
        try:
            await self.shards.close()
        finally:
            await self.shards.models.stop()
