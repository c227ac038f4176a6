"""Siltstone as a memory provider of the Agent Memory Benchmark (github.com/vectorize-io/agent-memory-benchmark).

    siltstone dev --data /tmp/amb                                 # a worker, or the address of yours in SILTSTONE_URL
    uv run --with ../siltstone/client python ../siltstone/benchmarks/wrappers/agent_memory_benchmark.py \\
        run --dataset locomo --split locomo10 --memory siltstone

The second command runs in a checkout of that benchmark, beside one of this repository. It is that benchmark's own
command with one provider more. Answers and judgements are by its models and need its key; Siltstone uses none. With
`memory.scoring.policy: all` every exchange becomes a memory, otherwise the worker chooses.

A document of a conversation becomes a session: messages with roles, or turns of two speakers, of whom the one who
speaks first is the user in all of the user's sessions. Any other text is remembered in parts of at most 4,000
characters. Each run has users of its own.
"""

from __future__ import annotations

import importlib
import json
import os
import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Protocol

from siltstone_client import Memory

#: The longest time until a write can be read, in seconds.
PATIENCE: Final = 60.0
#: The distance of a session's messages: the documents have only one time.
BETWEEN: Final = timedelta(seconds=30)
#: The longest content of a message, in bytes of UTF-8, and the longest part of a text.
MOST_BYTES, MOST_CHARS = 32_000, 4_000
#: The maximum number of messages in a call.
AT_ONCE: Final = 1000


class Document(Protocol):
    """A document of that benchmark: `memory_bench.models.Document`."""

    id: str
    content: str
    user_id: str | None
    messages: list[dict[str, Any]] | None
    timestamp: str | None


class Siltstone:
    """What is Siltstone's of a provider. The rest is inherited from that benchmark's `MemoryProvider`."""

    name = "siltstone"
    description = "Self-hosted memory over Kafka: exchanges as they were said, found by words and meaning, no LLM."
    kind = "local"
    provider = "siltstone"
    concurrency = 4
    #: `memory_bench.models.Document`
    document: Any

    def __init__(self) -> None:
        url, token = os.environ.get("SILTSTONE_URL", "http://127.0.0.1:8000"), os.environ.get("SILTSTONE_TOKEN")
        self._memory = Memory(url, token=token or None, read_your_writes=True)
        self._run = uuid.uuid4().hex[:8]
        self._speakers = dict[str, str]()

    def prepare(self, store_dir: Path, unit_ids: set[str] | None = None, reset: bool = True) -> None:
        """Name the run, or read the name of the run whose memories are asked again."""
        file = store_dir / "siltstone_run"
        if reset or not file.exists():
            store_dir.mkdir(parents=True, exist_ok=True)
            file.write_text(uuid.uuid4().hex[:8], encoding="utf-8")
        self._run = file.read_text(encoding="utf-8")

    def cleanup(self) -> None:
        self._memory.close()

    def ingest(self, documents: list[Document]) -> None:
        for one in documents:
            user = self._user(one.user_id)
            if messages := [*self._messages(one)]:
                for start in range(0, len(messages), AT_ONCE):
                    self._memory.add(messages[start : start + AT_ONCE], user_id=user, session_id=one.id)
                self._memory.end_session(user_id=user, session_id=one.id, wait=PATIENCE)
            else:
                for part in parts_of(one.content):
                    self._memory.remember(
                        part, user_id=user, metadata={"document": one.id}, timestamp=one.timestamp, wait=PATIENCE
                    )

    def retrieve(
        self, query: str, k: int = 10, user_id: str | None = None, query_timestamp: str | None = None
    ) -> tuple[list[Any], dict[str, Any] | None]:
        """Memories of any age count, because the documents are of other years than the worker's clock."""
        found = self._memory.search(
            query,
            user_id=self._user(user_id),
            top_k=k,
            include_all=True,
            touch=False,
            reference_date=query_timestamp,
        )
        documents = [
            self.document(
                id=hit.metadata.get("document") or hit.session_id or str(hit.id),
                content=f"[{hit.created_at:%Y-%m-%d %H:%M}] {hit.memory}",
            )
            for hit in found.results
        ]
        return documents, found.model_dump(mode="json")

    def _user(self, user_id: str | None) -> str:
        return f"amb-{self._run}-{user_id or 'everyone'}"

    def _messages(self, one: Document) -> Iterator[dict[str, Any]]:
        at = datetime.fromisoformat(one.timestamp) if one.timestamp else None
        for place, turn in enumerate(turns_of(one)):
            content = str(turn.get("content") or turn.get("text") or "").encode()[:MOST_BYTES].decode(errors="ignore")
            if not content.strip():
                continue
            message = {"role": turn.get("role"), "content": content, "message_id": f"{one.id}/{place}"}
            if speaker := turn.get("speaker"):
                first = self._speakers.setdefault(self._user(one.user_id), speaker)
                message |= {"role": "user" if speaker == first else "assistant", "name": speaker}
            if at is not None:
                message["timestamp"] = at + BETWEEN * place
            yield message


def turns_of(one: Document) -> list[Mapping[str, Any]]:
    """The turns of a conversation: `messages`, or a JSON list as the content. Empty for any other text."""
    turns: Any = one.messages
    if not turns and one.content.lstrip().startswith("["):
        try:
            turns = json.loads(one.content)
        except ValueError:
            return []
    said = turns if isinstance(turns, list) else []
    return said if all(isinstance(turn, dict) and ("role" in turn or "speaker" in turn) for turn in said) else []


def parts_of(text: str) -> Iterator[str]:
    """Parts of a text, which end with a line if a line ends early enough."""
    while text := text.strip():
        end = len(text) if len(text) <= MOST_CHARS else text.rfind("\n", 1, MOST_CHARS) + 1 or MOST_CHARS
        yield text[:end].rstrip()
        text = text[end:]


def register() -> None:
    """Add the provider to that benchmark's providers."""
    memory = importlib.import_module("memory_bench.memory")
    base = importlib.import_module("memory_bench.memory.base").MemoryProvider
    document = importlib.import_module("memory_bench.models").Document
    memory.REGISTRY[Siltstone.name] = type("SiltstoneMemoryProvider", (Siltstone, base), {"document": document})


if __name__ == "__main__":
    register()
    importlib.import_module("memory_bench.cli").app()
