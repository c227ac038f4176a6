"""A worker's intake over the records of a partition, up to an end: without a broker, and broken off anywhere."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from schemas.settings import KafkaSettings, MemorySettings, ScoringSettings, Settings
from schemas.topics import EXCHANGES, SESSIONS, Topics, route_of
from streams.replay.context import Send
from streams.replay.intake import ReplayedIntake
from streams.replay.plan import OffsetRange
from streams.replay.progress import ReplayProgress
from tests.support.making import START, line

SETTINGS = Settings(
    kafka=KafkaSettings(partitions=1),
    memory=MemorySettings(scoring=ScoringSettings(policy="all"), promote_threshold=2),
)


@dataclass
class Record:
    """What the agent reads of a Kafka record."""

    offset: int
    value: bytes
    key: bytes | None = route_of("u", 1)[0]
    partition: int = 0
    topic: str = "conversations"
    headers: tuple[tuple[str, bytes], ...] = ()

    @property
    def timestamp(self) -> int:
        return START + 1_000 * self.offset


def said(messages: int) -> list[Record]:
    return [Record(i, line(i, "u", ("user", "assistant")[i % 2], i)) for i in range(messages)]


async def read(
    path: Path,
    records: Sequence[Record],
    *,
    start: int = 0,
    batches: int | None = None,
    send: Send | None = None,
) -> ReplayProgress:
    """One by one, each saved, to the end or for so many; what is kept then."""
    progress, ticks = ReplayProgress(path), itertools.count(step=10)
    intake = ReplayedIntake(
        0,
        OffsetRange(0, start, len(records)),
        progress,
        settings=SETTINGS,
        topics=Topics.with_prefix(""),
        shards=None,
        rater=None,
        send=send,
        monotonic=lambda: float(next(ticks)),
    )
    async with intake:
        for record in records[await intake.begin() :][:batches]:
            await intake.take([record], record.offset + 1)
        if batches is None:
            await intake.end()
    return progress


def kept(progress: ReplayProgress) -> Any:
    with closing(progress):
        rows = [sorted(progress.rows(name)) for name in (EXCHANGES, SESSIONS)]
        return rows, [one.value for one in progress.found()], progress.noted


async def test_broken_off_after_every_record_it_comes_to_the_same(tmp_path: Path) -> None:
    records = said(12)
    whole = kept(await read(tmp_path / "whole", records))
    for _ in records:
        (await read(tmp_path / "broken", records, batches=1)).close()
    assert kept(await read(tmp_path / "broken", records)) == whole
    assert len(whole[1]) == whole[2]["found"] == 5


async def test_what_came_before_the_start_is_in_the_windows_alone(tmp_path: Path) -> None:
    """Its promotions are not found, and it is not counted. The last exchange is open."""
    progress = await read(tmp_path / "late", said(12), start=6)
    _, found, counted = kept(progress)
    assert [orjson.loads(one)["message_ids"] for one in found] == [["u-6", "u-7"], ["u-8", "u-9"]]
    assert (counted["messages"], counted["offset"]) == (6, 12)


@pytest.mark.parametrize(
    ("wrong", "counted"),
    [(Record(3, b"no json"), "unusable"), (Record(3, line(3, "u", "assistant", 3), key=b"another"), "misrouted")],
)
async def test_what_is_wrong_is_counted_and_only_promotions_are_sent(
    tmp_path: Path, wrong: Record, counted: str
) -> None:
    """The worker that reads the same records sends dead letters, and produces again what is misrouted."""
    sent: list[bytes] = []

    async def send(value: bytes, key: bytes | None) -> asyncio.Future[Any]:
        sent.append(value)
        taken: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        taken.set_result(None)
        return taken

    records = said(12)
    records[3] = wrong
    _, found, numbers = kept(await read(tmp_path / "progress", records, send=send))
    assert {orjson.loads(one)["type"] for one in sent} == {"promotion"}
    assert (numbers[counted], found) == (1, [])


async def test_who_said_it_is_in_what_a_replay_finds(tmp_path: Path) -> None:
    """A worker's promotion has it in a header; one that is found again has none, so the event says it."""
    records = said(12)
    records[3] = Record(3, line(3, "u", "tool", 3, name="search"))
    _, found, _ = kept(await read(tmp_path / "progress", records))
    sources = {tuple(event["message_ids"]): event.get("sources") for event in map(orjson.loads, found)}
    assert [who for ids, who in sources.items() if "u-3" in ids] == [["assistant", "tool:search", "user"]]
    assert {str(who) for ids, who in sources.items() if "u-3" not in ids} == {"None"}
