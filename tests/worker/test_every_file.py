"""A forgotten user is in no file of any worker, after moves, restarts and a restore.

A kind of file that `KINDS` and `WITHOUT_WORDS` do not list fails the test: list it with what is forgotten of it.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
import pytest

from schemas.lifecycle import DAY_MS
from schemas.settings import CheckpointsSettings, Settings
from schemas.times import now_ms
from schemas.topics import partition_of
from streams.app import Siltstone
from streams.kafka.bulk import producing
from streams.runtime.timers import Timer, Timers
from tests.support.api import api
from tests.support.groups import LONG_MISSED
from tests.support.making import START, line
from tests.support.sparse import held
from tests.support.waiting import until, until_it_is
from tests.worker.test_moving import settled
from tests.worker.test_pipeline import feed

pytestmark = pytest.mark.slow

#: Words that share no letters: of what is compressed, the first time that something comes is as it was written.
ANN, SESSION, SAID, NOTED, KEPT, OTHERS = (
    "c81f02d7a946", "5e0b9d3f7c2a", "97d4e6a1b035", "2fa8c50e716d", "b36e19f8d407", "e0742bc95f1d",
)  # fmt: skip
VECTOR: Final = "a vector"
WORDS: Final = (ANN, SESSION, SAID, NOTED, KEPT)

#: Words by kind of file.
Words = Mapping[str, Collection[str]]

#: What a worker may have on its disk: its kinds, and which of a user's words each of them holds.
KINDS: Final[Words] = {
    "shards/*/catalog.duckdb*": (ANN, KEPT),
    "shards/*/vectors-*.f32": (VECTOR,),
    "shards/*/segments/*.ivf": (VECTOR,),
    "shards/*/search/*.sst": (ANN, KEPT),
    "shards/*/search/*.log": (ANN, KEPT),
    "windows/*/*.sst": (ANN, SESSION, SAID, NOTED),
    "memory/*/*.md": (ANN, SAID),
    "analytics/parquet/*.parquet": (ANN, KEPT),
    "analytics/siltstone.duckdb": (ANN, KEPT),
    "warm/*/files/shard/catalog.duckdb*": (ANN, KEPT),
    "warm/*/files/shard/*": (VECTOR,),
    "warm/*/files/windows/*": (ANN, SESSION, SAID, NOTED),
    "restoring/*": (ANN, KEPT, VECTOR),
}
#: Those that name no user.
WITHOUT_WORDS: Final = (
    "shards/*/reached", "shards/*/segments.json", "shards/*.lock", "shards/*/search/*", "windows/*/*",
    "memory/*.lock", "analytics/staged/lock", "warm/*/manifest*", "partitions", "topics.json",
)  # fmt: skip
#: RocksDB notes in it which keys a file has had, until the store is opened again; a copy is opened when it is used.
NOTED_KEYS: Final = ("windows/*/MANIFEST-*", "warm/*/files/windows/MANIFEST-*")
#: Where the tombstone and the audit trail name a user who was forgotten.
AUDITED: Final[Words] = dict.fromkeys(
    ("shards/*/catalog.duckdb*", "warm/*/files/shard/catalog.duckdb*", "analytics/parquet/*.parquet",
     "analytics/siltstone.duckdb"), (ANN,)
)  # fmt: skip
NOT_OPENED: Final[Words] = dict.fromkeys(NOTED_KEYS, (ANN, SESSION))
#: Until the session is over, and a day later.
NOT_OVER: Final[Words] = dict.fromkeys(("windows/*/*.sst", "warm/*/files/windows/*", *NOTED_KEYS), (ANN, SESSION))


class House:
    """Two disks, and what is to be in no file of them."""

    def __init__(self, settings: Settings, tmp_path: Path) -> None:
        self.store = tmp_path / "store"
        self.disks: tuple[Path, ...] = (tmp_path / "one", tmp_path / "two")
        checkpoints = CheckpointsSettings(url=self.store.as_uri(), seconds=1000, warm=1)
        soon_over = settings.memory.model_copy(update={"session_idle_seconds": 8, "exchange_gap_seconds": 1})
        # Two workers in one process hold each other up.
        kafka = settings.kafka.model_copy(update={**LONG_MISSED, "session_timeout_seconds": 8.0})
        self._settings = settings.model_copy(update={"checkpoints": checkpoints, "memory": soon_over, "kafka": kafka})
        self.partition = partition_of(ANN, settings.kafka.partitions)
        self.secrets = {word: word.encode() for word in WORDS}
        #: How far the workers' clock is ahead (ms). What a command deletes is settled within half a minute.
        self.ahead = 60_000

    @asynccontextmanager
    async def worker(self, disk: Path) -> AsyncIterator[Siltstone]:
        worker = Siltstone(self._settings.model_copy(update={"data_dir": disk}))
        # Before it starts: a store whose places are dated later than now is cleared.
        worker.context.stores.now = lambda: now_ms() + self.ahead
        try:
            await worker.start()
            yield worker
        finally:
            await worker.stop()

    def found(self, disk: Path, secrets: Mapping[str, bytes] | None = None) -> dict[str, set[str]]:
        """The words in each kind of files; of Parquet, which is compressed, in its rows."""
        there: dict[str, set[str]] = defaultdict(set)
        for path in disk.rglob("*"):
            with suppress(FileNotFoundError):  # a worker has just removed it
                if path.is_file():
                    name = path.relative_to(disk).as_posix()
                    content = name.encode() + held(path).written
                    if path.suffix == ".parquet":
                        content += repr(duckdb.execute(f"FROM read_parquet('{path}')").fetchall()).encode()
                    there[kind_of(name)] |= {
                        word for word, secret in (secrets or self.secrets).items() if secret in content
                    }
        return {kind: words for kind, words in there.items() if words}

    def left(self, *expected: Words) -> dict[str, set[str]]:
        """What is on the disks that is not to be."""
        there: dict[str, set[str]] = {}
        for disk in self.disks:
            for kind, words in self.found(disk).items():
                if more := words.difference(*(kinds.get(kind, ()) for kinds in expected)):
                    there[f"{disk.name}: {kind}"] = more
        return there


def kind_of(name: str) -> str:
    kinds = [kind for kind in (*NOTED_KEYS, *KINDS, *WITHOUT_WORDS) if fnmatch(name, kind)]
    assert kinds, f"which words of a user's are in {name}, and what forgets them?"
    return kinds[0]


#: What each worker does again and again.
AllDue = Mapping[Timers, list[Callable[[], Awaitable[None]]]]


@pytest.fixture
def due(monkeypatch: pytest.MonkeyPatch) -> AllDue:
    found: dict[Timers, list[Callable[[], Awaitable[None]]]] = defaultdict(list)
    every = Timers.every

    def noted(timers: Timers, timer: Timer, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        found[timers].append(work)
        every(timers, timer, seconds, work)

    monkeypatch.setattr(Timers, "every", noted)
    return found


async def later(due: AllDue, *workers: Siltstone) -> None:
    """Some minutes: each timer of each worker has had three turns."""
    for _ in range(3):
        for worker in workers:
            for work in due[worker._timers]:
                await work()


async def all_there(worker: Siltstone) -> None:
    """Things that are said, kept, noted and summed up, of ann and of another; and the vector of one of ann's."""
    for user, words in ((ANN, (SAID, KEPT, NOTED)), ("bob", (OTHERS, OTHERS, OTHERS))):
        said, kept, noted = words
        session = SESSION if user == ANN else "s"
        await feed(
            worker,
            [
                (
                    user.encode(),
                    line(
                        i,
                        user,
                        ("user", "assistant")[i % 2],
                        i,
                        session_id=session,
                        content=f"I like the band {said} {i}",
                    ),
                )
                for i in range(12)
            ],
        )
        async with api(worker) as http:
            for body in (
                {"text": kept},
                {"text": noted, "kind": "short_term", "session_id": session, "timestamp": START},
            ):
                answer = await http.post("/v1/memories", params={"wait": "applied"}, json={"user_id": user, **body})
                answer.raise_for_status()
            answer = await http.post("/v1/summaries", json={"user_id": user, "date": "2026-01-01"})
            answer.raise_for_status()
    data = worker.settings.data_dir
    await until(lambda: len([*data.glob("memory/*/*.md")]) == 2, alive=worker)


async def until_left(
    house: House,
    due: AllDue,
    workers: Collection[Siltstone],
    *expected: Words,
) -> None:
    """Until timers have left nothing that is not expected."""
    left: dict[str, set[str]] = {}

    async def nothing() -> bool:
        await later(due, *workers)
        left.clear()
        left.update(house.left(*expected))
        return not left

    try:
        await until_it_is(nothing, alive=workers, pace=0.5)
    except AssertionError as exc:
        exc.add_note(f"left: {left}")
        raise


async def test_a_forgotten_user_is_in_no_file_of_any_worker(settings: Settings, tmp_path: Path, due: AllDue) -> None:
    """After moves to another disk and back, restarts, and a restore of what was before."""
    house, earlier = House(settings, tmp_path), tmp_path / "earlier"
    one, two = house.disks
    async with house.worker(one) as first:
        await settled(first)
        await all_there(first)
        vector = (await first.shards.models.current.embed([KEPT], of="question"))[0]
        house.secrets[VECTOR] = np.asarray(vector, np.float32).tobytes()[:64]
        await later(due, first)
    shutil.copytree(house.store, earlier)
    # As a worker leaves it that is killed while it restores; of its partition it may never hear again.
    shutil.copytree(one / "shards" / f"{house.partition}", one / "restoring" / f"{house.partition}-1-0" / "files")
    there = house.found(one)
    async with house.worker(two) as second:  # it has all of it from checkpoints
        await settled(second)
        async with house.worker(one) as first:
            await settled(first, second)
            both = (first, second)
            owner, other = both if house.partition in first.shards.partitions() else both[::-1]
            warm = other.checkpointing.warm
            assert warm is not None
            while house.partition not in warm.held():
                await later(due, *both)
            for disk in house.disks:
                for kind, words in house.found(disk).items():
                    there.setdefault(kind, set()).update(words)
            assert {kind: there.get(kind, set()) & {*words} for kind, words in KINDS.items()} == {
                kind: {*words} for kind, words in KINDS.items()
            }, "each kind held a word of hers"
            windows = owner.intake.windows
            await until(lambda: all(one.ended for one in windows.of_user(house.partition, ANN)), alive=both)
            async with api(owner) as http:
                (await http.delete("/v1/memories", params={"user_id": ANN})).raise_for_status()
            await until_left(house, due, both, AUDITED, NOT_OVER)
            await until(lambda: not windows.of_user(house.partition, ANN), alive=both)
            async with producing(settings.kafka) as producer:  # rows go to the disk when something is committed
                for number in range(16):
                    await producer.send(b"user-%d" % number, line(0, f"user-{number}", "user", 60))
            await until(lambda: not windows.has_changes(house.partition), alive=both)
            house.ahead += DAY_MS  # once a day all that is deleted leaves the windows' files
            await until_left(house, due, both, AUDITED, NOT_OPENED)
        await settled(second)
    assert house.left(AUDITED, NOT_OPENED) == {}
    for disk in (one, two, one):
        async with house.worker(disk) as worker:
            await settled(worker)
            await later(due, worker)
            assert await worker.service.of_user(ANN) == ()
    async with house.worker(one) as first:
        async with house.worker(two) as second:
            await settled(first, second)
            await until_left(house, due, (first, second), AUDITED, NOT_OVER)
        await settled(first)
    assert house.left(AUDITED, NOT_OVER) == {}
    for disk in (one, two):  # a checkpoint of before comes to a new disk
        for folder in (house.store, disk):
            shutil.rmtree(folder)
        shutil.copytree(earlier, house.store)
        house.disks = (disk,)
        async with house.worker(disk) as worker:
            await settled(worker)
            await until_left(house, due, (worker,), AUDITED, NOT_OVER)
            house.ahead += DAY_MS
            # In each partition: what slept for a day would be read from its changelog again, tombstones included.
            spoken = [f"{disk.name}-{number}" for number in range(16)]
            await feed(worker, [(user.encode(), line(0, user, "user", 60)) for user in spoken])
            windows = worker.intake.windows
            await until(lambda: not windows.has_changes(house.partition), alive=worker)  # noqa: B023
            await until_left(house, due, (worker,), AUDITED, NOT_OPENED)
            assert len(await worker.service.of_user("bob")) > 0
        async with house.worker(disk) as worker:
            await settled(worker)
        assert house.left(AUDITED) == {}
    kept = house.found(two, {OTHERS: OTHERS.encode()})
    assert kept.keys() >= {"shards/*/catalog.duckdb*", "analytics/siltstone.duckdb"}
    assert kept.keys() & {"shards/*/search/*.sst", "shards/*/search/*.log"}
