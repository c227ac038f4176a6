"""Siltstone as a provider of PrecisionMemBench (github.com/tenurehq/precisionMemBench).

    siltstone dev --data /tmp/precision                           # a worker, or the address of yours
    python benchmarks/wrappers/precision_mem_bench.py [--siltstone http://127.0.0.1:8000] [--port 8080]

Its harness asks a service for `POST /add`, `POST /search` and `DELETE /reset` (its SUBMITTING.md). In its checkout,
add a provider to `providers.config.json` and run it:

    "siltstone": {"envVar": "SILTSTONE_WRAPPER", "defaultUrl": "http://localhost:8080", "seedDelayMs": 0}
    MEMORY_PROVIDER=siltstone RESEED=true npx ava src/retrieval.external.eval.test.ts --timeout 10m

Each belief is one requested memory, found by the default search. This only adapts: no threshold, and the `scope` that
the harness also sends is not used. A case is passed only if nothing else than the expected beliefs is returned, while
Siltstone returns as many memories as it is asked for: expect many failures, as of every ranking without a threshold.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import click
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel, Field

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "client"))

from siltstone_client import Memory

#: The key under which the harness names a belief, and expects it back as `id`.
BELIEF: Final = "beliefId"
#: The longest time until a belief can be found, in seconds.
PATIENCE: Final = 60.0


class Belief(BaseModel):
    text: str
    user_id: str
    metadata: dict[str, Any] = Field(default_factory=dict)


class Question(BaseModel):
    query: str
    user_id: str
    limit: int = 20


class Beliefs:
    """The beliefs of one seeding. After a reset, users have other names: what was forgotten does not come back."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._users = dict[str, str]()

    def add(self, belief: Belief) -> None:
        user = self._users.setdefault(belief.user_id, f"{belief.user_id}-{uuid.uuid4().hex[:8]}")
        self._memory.remember(belief.text, user_id=user, metadata={BELIEF: belief.metadata[BELIEF]}, wait=PATIENCE)

    def search(self, question: Question) -> list[dict[str, Any]]:
        """The found beliefs, each once, best first. An empty query, and a user without beliefs, find nothing."""
        user = self._users.get(question.user_id)
        if user is None or not question.query.strip() or question.limit < 1:
            return []
        found = self._memory.search(question.query, user_id=user, top_k=question.limit, touch=False).results
        shown = {
            hit.metadata[BELIEF]: {"id": hit.metadata[BELIEF], "memory": hit.memory, "score": hit.relevance}
            for hit in reversed(found)
            if BELIEF in hit.metadata
        }
        return [*reversed(shown.values())]

    def reset(self) -> None:
        for user in self._users.values():
            self._memory.forget_user(user_id=user, wait=PATIENCE)
        self._users.clear()


def service(memory: Memory) -> FastAPI:
    """The harness's contract. Its functions run in threads, because the client waits for the worker."""

    @asynccontextmanager
    async def closing(_: FastAPI) -> AsyncIterator[None]:
        yield
        memory.close()

    app, beliefs = FastAPI(title="Siltstone for PrecisionMemBench", lifespan=closing), Beliefs(memory)

    @app.post("/add")
    def add(belief: Belief) -> dict[str, bool]:
        beliefs.add(belief)
        return {"ok": True}

    @app.post("/search")
    def search(question: Question) -> dict[str, list[dict[str, Any]]]:
        return {"results": beliefs.search(question)}

    @app.delete("/reset")
    def reset() -> dict[str, bool]:
        beliefs.reset()
        return {"ok": True}

    return app


@click.command()
@click.option("--siltstone", "url", default="http://127.0.0.1:8000", show_default=True, help="A worker's address.")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8080, show_default=True, help="The harness expects the service here.")
def main(url: str, host: str, port: int) -> None:
    """Answer PrecisionMemBench's harness. The token, if the worker wants one, is in SILTSTONE_TOKEN."""
    uvicorn.run(service(Memory(url, token=os.environ.get("SILTSTONE_TOKEN") or None)), host=host, port=port)


if __name__ == "__main__":
    main()
