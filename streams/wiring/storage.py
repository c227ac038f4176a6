"""Where memories are: this worker's shards and their embedding model."""

from __future__ import annotations

from streams.clients.embedding import Embedding
from streams.memory_shares import shares
from streams.shards import OwnedShards
from streams.wiring.context import WorkerContext


class Storage:
    """`copies`: the bytes that an analysts' copy may take while it is made."""

    def __init__(self, context: WorkerContext) -> None:
        settings, memory = context.settings, shares(context.settings.memory_limit)
        self.copies = memory.copies
        self.shards = OwnedShards(
            settings.data_dir / "shards",
            settings.long_term,
            settings.lifecycle,
            Embedding(settings.embedder()),
            on_failure=context.hot.halt,
            memory=memory,
        )
