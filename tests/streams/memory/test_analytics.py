"""The analysts' copy of a running worker's shards: when it is made, and when not."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from schemas.errors import DataDirError, ShardNotHere
from schemas.events import Forget
from schemas.settings import EmbeddingSettings, LifecycleSettings, LongTermSettings
from streams.memory.analytics import AnalyticsJob
from streams.models.embedding.embedding import Embedding
from streams.runtime.background import NICENESS
from streams.runtime.backlog_gate import BACKLOG, BacklogGate
from streams.runtime.clock import EventClock
from streams.shards.owned import OwnedShards
from streams.telemetry.metrics import Metrics, labelled
from tables.analysts.copy import Fingerprint
from tables.database.database import Interruption, connect
from tables.memories.shard import Shard
from tests.support.making import START, axis, promotion
from tests.support.waiting import until


class Waiting:
    """Records that wait, as many as are set."""

    records = 0


class Toy(Embedding):
    """A model that is there at once."""

    def __init__(self) -> None:
        super().__init__(EmbeddingSettings(backend="use"))

    async def model(self) -> object:  # type: ignore[override]
        class Model:
            name, dimension = "toy", 8

        return Model()


class Setting:
    """An agent over shards of two partitions."""

    def __init__(self, data: Path) -> None:
        self.data, self.metrics, self.waiting = data, Metrics(), Waiting()
        self.shards = OwnedShards(
            data / "shards", LongTermSettings(), LifecycleSettings(), Toy(), lambda exc, where: None
        )
        self.agent = self.made()

    def made(
        self,
        *,
        enabled: bool = True,
        monotonic: Callable[[], float] = time.monotonic,
        processor: Callable[[], float] = lambda: 0.0,
    ) -> AnalyticsJob:
        return AnalyticsJob(
            folder=self.data / "analytics",
            shards=self.shards,
            metrics=self.metrics,
            clock=EventClock(),
            gate=BacklogGate(lambda: self.waiting.records, 0.2),
            lifecycle=LifecycleSettings(clock="event"),
            enabled=enabled,
            monotonic=monotonic,
            processor=processor,
        )

    async def keep(self, partition: int, text: str) -> None:
        event = promotion(text, text)
        await self.shards.call(partition, Shard.apply, [event], {event.event_id: axis(len(text))}, START)

    @property
    def turns(self) -> dict[str, int]:
        return {outcome: number for (outcome,), number in labelled(self.metrics.snapshots).items()}

    def texts(self) -> list[str]:
        with duckdb.connect(str(self.data / "analytics" / "siltstone.duckdb"), read_only=True) as db:
            return [text for (text,) in db.execute("SELECT text FROM memories ORDER BY text").fetchall()]


@pytest.fixture
async def setting(tmp_path: Path) -> AsyncIterator[Setting]:
    setting = Setting(tmp_path)
    setting.shards.own(frozenset({0, 1}))
    await until(lambda: setting.shards.ready)
    yield setting
    setting.agent.close()
    await setting.shards.close()


@pytest.mark.slow
async def test_a_copy_is_made_when_a_shard_has_changed(setting: Setting) -> None:
    await setting.keep(0, "a")
    await setting.agent.tick()
    await setting.agent.tick()
    assert (setting.turns, setting.texts()) == ({"made": 1, "unchanged": 1}, ["a"])
    await setting.keep(1, "bb")
    await setting.agent.tick()
    assert (setting.turns, setting.texts()) == ({"made": 2, "unchanged": 1}, ["a", "bb"])


@pytest.mark.slow
async def test_the_timers_copies_take_a_twentieth_of_a_core(setting: Setting) -> None:
    """Each part of a copy takes a second here, two shards and the whole: the next one is made a minute later."""
    seconds = [0.0]
    agent = setting.made(monotonic=lambda: seconds[0], processor=map(float, itertools.count()).__next__)
    try:
        for minute in range(20):
            for quarter in range(4):
                seconds[0] = 60.0 * minute + 15 * quarter
                await setting.keep(0, f"{minute}{quarter}")
                await agent.tick()
        assert setting.turns == {"made": 20, "spared": 60}
    finally:
        agent.close()


@pytest.mark.slow
async def test_one_that_is_asked_for_waits_for_no_share_and_counts(setting: Setting) -> None:
    seconds = [0.0]
    agent = setting.made(monotonic=lambda: seconds[0], processor=map(float, itertools.count()).__next__)
    try:
        for text in ("a", "bb"):
            await setting.keep(0, text)
            await agent.snapshot()
        assert setting.texts() == ["a", "bb"]
        await setting.keep(0, "ccc")
        seconds[0] = 59.9
        await agent.tick()
        assert setting.turns == {"made": 2, "spared": 1}
    finally:
        agent.close()


@pytest.mark.slow
async def test_what_is_forgotten_waits_for_no_share(setting: Setting) -> None:
    agent = setting.made(monotonic=lambda: 0.0, processor=map(float, itertools.count()).__next__)
    try:
        await setting.keep(0, "a")
        await agent.tick()
        said = promotion("a", "a").memory_id
        forget = Forget(event_id=uuid.uuid4(), user_id="u", timestamp=START, memory_id=said)
        await setting.shards.call(0, Shard.apply, [forget], {}, START)
        agent.forgot()
        await agent.tick()
        assert setting.texts() == []
    finally:
        agent.close()


@pytest.mark.slow
async def test_only_the_changed_shards_are_exported(setting: Setting) -> None:
    await setting.agent.tick()
    parquet = setting.data / "analytics" / "parquet" / "memories"
    before = {path.name: path.stat().st_ino for path in parquet.iterdir()}
    await setting.keep(1, "bb")
    await setting.agent.tick()
    after = {path.name: path.stat().st_ino for path in parquet.iterdir()}
    assert [name for name in before if before[name] != after[name]] == ["1.parquet"]


@pytest.mark.slow
async def test_a_folder_that_was_deleted_is_made_again(setting: Setting) -> None:
    """With the shards that have not changed."""
    await setting.keep(0, "a")
    await setting.agent.tick()
    shutil.rmtree(setting.data / "analytics")
    await setting.agent.tick()
    assert setting.texts() == ["a"]


async def test_a_backlog_goes_first(setting: Setting) -> None:
    """The timer's turn is left out; one that is asked for waits as long as other long-term work does."""
    setting.waiting.records = BACKLOG
    await setting.agent.tick()
    assert setting.turns == {"postponed": 1}
    made = await setting.agent.snapshot()
    assert (made.partitions, setting.turns) == ([0, 1], {"postponed": 1, "made": 1})


@pytest.mark.slow
async def test_a_copy_that_is_asked_for_is_made_though_nothing_changed(setting: Setting) -> None:
    """On the event clock, before any event, its moment is that of the newest memory."""
    await setting.keep(0, "a")
    await setting.agent.tick()
    made = await asyncio.gather(setting.agent.snapshot(), setting.agent.snapshot())
    assert [copy.at for copy in made] == [START, START]
    assert setting.turns == {"made": 3}


async def test_a_copy_that_fails_stops_nothing(setting: Setting, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged and counted, and made at a later turn."""
    in_the_way = setting.data / "analytics"
    in_the_way.write_text("")
    await setting.agent.tick()
    assert "the analysts' copy was not made" in caplog.text
    with pytest.raises(DataDirError):
        await setting.agent.snapshot()
    in_the_way.unlink()
    await setting.agent.tick()
    assert setting.turns == {"failed": 2, "made": 1}


async def test_a_worker_without_shards_has_nothing_to_copy(setting: Setting) -> None:
    setting.shards.own(frozenset())
    await until(lambda: not setting.shards.partitions())
    await setting.agent.tick()
    assert setting.turns == {}
    with pytest.raises(ShardNotHere):
        await setting.agent.snapshot()


async def test_the_copy_is_put_together_at_low_priority(setting: Setting) -> None:
    def niceness() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    assert await asyncio.get_running_loop().run_in_executor(setting.agent._thread, niceness) == NICENESS
    assert niceness() < NICENESS


async def forget(setting: Setting, text: str) -> None:
    """The memory of this text, and tell the agent."""
    event = promotion(text, text)
    gone = Forget(event_id=uuid.uuid4(), user_id="u", timestamp=START, memory_id=event.memory_id)
    await setting.shards.call(0, Shard.apply, [gone], {}, START)
    setting.agent.forgot()


@pytest.mark.slow
async def test_where_none_are_made_one_that_is_there_is_made_anew_when_something_is_forgotten(
    setting: Setting,
) -> None:
    """And at the start of a worker, which cannot know; else none is, and none where there was none."""
    setting.agent = setting.made(enabled=False)
    await setting.keep(0, "a")
    await setting.agent.tick()
    assert setting.turns == {}
    await setting.agent.snapshot()
    await forget(setting, "a")
    await setting.agent.tick()
    assert (setting.turns, setting.texts()) == ({"made": 2}, [])
    await setting.keep(0, "bb")
    await setting.agent.tick()
    assert (setting.turns, setting.texts()) == ({"made": 2}, [])
    setting.agent.close()
    setting.agent = setting.made(enabled=False)
    await setting.agent.tick()
    assert (setting.turns, setting.texts()) == ({"made": 3}, ["bb"])


async def test_what_is_postponed_or_fails_leaves_nothing_staged(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its shard may be another worker's by the next time, and what is in it forgotten."""
    await setting.keep(0, "a")
    export = Shard.export

    def then(what: Callable[[], None]) -> None:
        def exported(shard: Shard, folder: Path, copied: Fingerprint | None) -> Any:
            found = export(shard, folder, copied)
            what()
            return found

        monkeypatch.setattr(Shard, "export", exported)

    def backlog() -> None:
        setting.waiting.records = BACKLOG

    def fail() -> None:
        if list(staged.glob("memories-1*")):
            raise OSError(28, "No space left on device")

    staged = setting.data / "analytics" / "staged"
    for what, outcome in ((backlog, "postponed"), (fail, "failed")):
        then(what)
        await setting.agent.tick()
        setting.waiting.records = 0
        assert outcome in setting.turns
        assert [path.name for path in staged.glob("*-0.parquet")] == []


async def test_a_stop_does_not_wait_for_a_copy(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is interrupted at whatever statement it is."""
    begun, ended = threading.Event(), list[str]()

    def endless(*arguments: Any) -> None:
        interruption: Interruption = arguments[-1]
        with connect() as db, interruption.reaches(db):
            begun.set()
            try:
                while True:
                    db.execute("SELECT max(range % 7) FROM range(1_000_000_000_000)")  # streams: needs no memory
            except duckdb.InterruptException as exc:
                ended.append(type(exc).__name__)
                raise

    monkeypatch.setattr("streams.memory.analytics.assemble", endless)
    asked = asyncio.ensure_future(setting.agent.tick())
    await asyncio.to_thread(begun.wait)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    await asyncio.to_thread(setting.agent.close)
    assert ended == ["InterruptException"]
