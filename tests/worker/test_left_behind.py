"""After any commands and a forgetting, no file of the data directory holds the user's words."""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import duckdb
import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.conversations import Role
from schemas.events import ForgetUser, LongTermEvent, Remember
from schemas.exchanges import Message
from schemas.topics import key_of
from streams.models.embedding.embedding import Side, Vectors
from streams.summaries.requests import summary_request
from tables.memories.shard import Shard
from tests.crash.chatter import Said
from tests.fuzz.way import DIMENSION, Toy, Way
from tests.support.examples import examples
from tests.support.making import START, line, promotion
from tests.support.sparse import held
from tests.tables.commands import event
from tests.tables.memories.test_forgetting import COMMANDS, PROMOTED, SECRETS, found_in

SPOKEN, NOTED, OTHERS = "unmistakable-spoken", "unmistakable-noted", "keepsake of another"
#: Whoever has a text's vector can guess the text.
_VECTORS = np.random.default_rng(7).normal(size=(4, DIMENSION)).astype(np.float32)


class Telling(Toy):
    """Vectors that no file has by chance: three of the user's texts, some of them near-copies, and one of others."""

    async def embed(self, texts: Sequence[str], of: Side, attempt: int, *, urgent: bool) -> Vectors:
        rows = _VECTORS[[3 if OTHERS in text else zlib.crc32(text.encode()) % 3 for text in texts]]
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


class Household(Way):
    """A worker with all that it writes: shards, windows, notes, day files, the analysts' copy."""

    def __enter__(self) -> Self:
        super().__enter__()
        self.worker.shards.models.current._backend = Telling()
        return self

    def tell(self, *events: LongTermEvent) -> None:
        self.take([Said("long_term", key_of(one.user_id), one.model_dump_json().encode()) for one in events])

    def say(self, user: str, word: str) -> None:
        said = [line(i, user, ("user", "assistant")[i % 2], i, content=f"{word} {i}") for i in range(6)]
        self.take([Said("conversations", user.encode(), raw) for raw in said])

    def sum_up(self, user: str, word: str) -> None:
        self._runner.run(self._summed_up(user, word))

    async def _summed_up(self, user: str, word: str) -> None:
        agent, day = self.worker.summaries, date(2026, 1, 1)
        texts = [f"I like {word} number {i}." for i in (1, 2)]
        said = [("s", Message(text, Role.USER, text, START, None, None)) for text in texts]
        asked = summary_request(uuid.uuid4(), user, day, "manual", said)
        agent._drafts._extraction = InProcess()
        record = SimpleNamespace(value=orjson.dumps(asked.model_dump(mode="json")), key=user.encode(), partition=0)
        record.headers, record.topic, record.offset, record.timestamp = (), "summary-requests", 0, START
        done = await agent.handle(0, [record])
        assert done is not None
        await done

    def copy(self) -> None:
        """What the timer of the analysts' copy does."""
        self._runner.run(self.worker.jobs.analytics.tick())

    def quiet(self) -> None:
        """Two savings between which nothing was written."""
        for _ in range(2):
            self._runner.run(self.worker.shards.call(0, Shard.save))

    def __exit__(self, *_: object) -> None:
        self._runner.run(self.worker.summaries.stop())
        self.worker.jobs.analytics.close()
        super().__exit__()


class InProcess:
    """Sums up without a process of its own."""

    async def drafted(self, orders: Sequence[Any]) -> list[Any]:
        from streams.summaries.rules.drafting import drafted

        return [drafted(order) for order in orders]

    async def close(self) -> None:
        """There is no process."""


def left_in(data: Path, words: Sequence[str] = (*SECRETS, SPOKEN, NOTED)) -> list[tuple[str, str]]:
    """The files that hold one of the words, or a vector of them; of Parquet, which is compressed, the rows."""
    found = found_in(data, words)
    for path in data.rglob("*.parquet"):
        rows = repr(duckdb.execute(f"FROM read_parquet('{path}')").fetchall())
        found += [(path.name, word) for word in words if word in rows]
    vectors = [(row / np.linalg.norm(row)).astype(np.float32).tobytes() for row in _VECTORS[:3]]
    for path in data.rglob("*"):
        if path.is_file() and any(vector in held(path).written for vector in vectors):
            found.append((path.name, "a vector"))
    return found


@pytest.mark.slow
@examples(15)
@given(
    commands=st.lists(COMMANDS, min_size=1, max_size=8),
    restart=st.booleans(),
    copies=st.sets(st.integers(0, 8), max_size=3),
    closing=st.booleans(),
)
def test_after_any_commands_and_a_forgetting_no_file_of_the_data_directory_holds_a_word_of_the_users(
    tmp_path_factory: pytest.TempPathFactory,
    commands: list[LongTermEvent],
    restart: bool,
    copies: set[int],
    closing: bool,
) -> None:
    """Nor a vector of theirs: shards, day files in both places, the analysts' copy as a database and as Parquet."""
    data = tmp_path_factory.mktemp("data")
    house = Household(data).__enter__()
    try:
        house.tell(promotion(OTHERS, "z", user="v"), *PROMOTED)
        house.tell(event(Remember, text=NOTED, kind="short_term", session_id="s", ttl_seconds=900))
        for user, word in (("u", SPOKEN), ("v", OTHERS)):
            house.say(user, word)
            house.sum_up(user, word)
        for place, command in enumerate(commands):
            house.tell(command)
            if place in copies:
                house.copy()
        if restart:
            house.__exit__()
            house = Household(data).__enter__()
        house.tell(event(ForgetUser, at=START + 86_400_000))
        if not closing:
            house.quiet()
        house.copy()
        if not closing:
            assert left_in(data) == []
    finally:
        house.__exit__()
    assert left_in(data) == []
    assert {name.split(".")[-1] for name, _ in left_in(data, [OTHERS])} >= {"md", "parquet", "duckdb"}
