"""A model that does not answer is asked again, for hours, and nothing waits for it."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import pytest

from schemas.conversations import Role
from schemas.exchanges import Exchange, Message
from streams.intake.ratings import PATIENCE_SECONDS, Key, Ratings
from streams.shards.owned import OwnedShards
from streams.telemetry.metrics import Metrics, labelled
from tables.memories.shard import Shard
from tests.support.making import START

P = ParamSpec("P")
T = TypeVar("T")

HOUR = 3600.0


class KeptRatings:
    """The ratings of a shard."""

    def __init__(self) -> None:
        self._held: dict[uuid.UUID, int] = {}

    def of(self, memory_id: uuid.UUID, model: str) -> int | None:
        return self._held.get(memory_id)

    def put(self, memory_id: uuid.UUID, model: str, rating: int, now: int) -> None:
        self._held[memory_id] = rating


class Kept(OwnedShards):
    """Shards that keep ratings, and nothing else."""

    def __init__(self) -> None:
        self.ratings = KeptRatings()

    async def call(
        self, partition: int, method: Callable[Concatenate[Shard, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return method(cast(Shard, self), *args, **kwargs)


class Model:
    """Answers with its value, or not at all."""

    model = "judge"

    def __init__(self) -> None:
        self.value: int | None = None
        self.pause = 0.0
        self.asked: list[str] = []

    async def rate(self, user: str, assistant: str) -> int | None:
        self.asked.append(user)
        return self.value

    def resumes_in(self) -> float:
        return self.pause


class Room:
    """Ratings by a clock of its own."""

    def __init__(self) -> None:
        self.rater, self.metrics, self.now = Model(), Metrics(), 0.0
        self.answers: dict[int, int | None] = {}
        self.ratings = Ratings(self.rater, 1, Kept(), self.metrics, self._fail, lambda: self.now)

    def _fail(self, exc: BaseException, where: str) -> None:
        raise AssertionError(where) from exc

    async def answered(self, key: Key, value: int | None) -> None:
        self.answers[key[3]] = value

    def ask(self, seq: int) -> asyncio.Future[None] | None:
        return self.ratings.ask((0, "u", "s", seq), Exchange(seq, (Message(f"m{seq}", Role.USER, f"{seq}", START),)))

    async def passes(self, seconds: float, step: float = 10.0) -> None:
        """Time goes on, with a tick now and then."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + step)
            self.ratings.tick()
            await self.settled()

    async def settled(self) -> None:
        """Let everything go on that can."""
        for _ in range(10):
            await asyncio.sleep(0)

    async def __aenter__(self) -> Room:
        self.ratings.start(self.answered)
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.ratings.stop()


@pytest.mark.parametrize("out", [60.0, HOUR, 12 * HOUR])
async def test_an_outage_of_hours_loses_no_exchange(out: float) -> None:
    """The answer comes within the time that the outage took, and an hour at the most."""
    async with Room() as room:
        first = room.ask(1)
        await room.passes(out)
        assert first is not None
        assert first.done()
        assert room.answers == {}
        room.rater.value = 7
        await room.passes(min(out + 30, HOUR))
        assert room.answers == {1: 7}
        assert labelled(room.metrics.ratings)["answered",] == 1


async def test_it_is_asked_less_and_less_often() -> None:
    async with Room() as room:
        room.ask(1)
        asked = []
        for _ in range(12):
            await room.passes(HOUR)
            asked.append(len(room.rater.asked))
        assert asked[0] == 7
        assert [after - before for before, after in itertools.pairwise(asked[2:])] == [1] * 9


async def test_what_is_unanswered_for_a_day_counts_as_unimportant() -> None:
    async with Room() as room:
        room.ask(1)
        await room.passes(PATIENCE_SECONDS - HOUR)
        assert room.answers == {}
        await room.passes(2 * HOUR)
        assert room.answers == {1: None}


async def test_what_the_session_says_next_tries_again_at_once_however_long_it_has_been() -> None:
    async with Room() as room:
        room.ask(1)
        await room.passes(5 * HOUR)
        room.rater.value = 5
        assert room.ask(1) is None
        await room.settled()
        assert room.answers == {1: 5}


async def test_what_is_asked_for_the_first_time_goes_first() -> None:
    """Commits wait for it, and for nothing that is asked again."""
    async with Room() as room:
        for seq in range(3):
            room.ask(seq)
        await room.settled()
        room.now += 30
        room.ratings.tick()
        room.ask(9)
        await room.settled()
        assert room.rater.asked == ["0", "1", "2", "9", "0", "1", "2"]


async def test_a_service_that_wants_to_be_left_alone_is_and_that_is_no_try() -> None:
    async with Room() as room:
        room.rater.pause = 100.0
        first = room.ask(1)
        await room.settled()
        assert first is not None
        assert (first.done(), room.rater.asked) == (True, [])
        room.rater.pause, room.rater.value = 0.0, 3
        await room.passes(100)
        assert room.answers == {1: 3}
