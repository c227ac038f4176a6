"""Three workers with disks of their own; one is lost, and its partitions are where their copies were."""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from schemas.settings import Settings
from schemas.topics import partition_of
from streams.kafka.clients.broker import ensure_topics
from tables.checkpoints.checkpoints import Checkpoints
from tables.checkpoints.warm import WarmCopies
from tests.crash.test_workers import USERS, all_found, idle, ready, say
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE, NoAnswer, until
from tests.support.workers import sources, worker_process

pytestmark = pytest.mark.slow

PARTITIONS = 6


def gauge(port: int, name: str) -> float:
    try:
        text = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False, timeout=5).text
    except httpx.HTTPError as exc:
        raise NoAnswer(repr(exc)) from exc
    found = re.search(rf"^{name} ([0-9.e+]+)$", text, re.MULTILINE)
    return float(found[1]) if found else -1


def takeovers(port: int) -> float:
    return gauge(port, "siltstone_warm_takeovers_total")


def held(data: Path) -> set[int]:
    """The partitions that were opened on a disk."""
    return {int(path.parent.name) for path in data.glob("shards/*/catalog.duckdb")}


def rewritten(log: Path) -> int:
    """How many records of `long-term` a worker read again, by what it said."""
    found = re.findall(r"it is behind: offsets (\d+) to (\d+) are read again", log.read_text())
    return sum(int(last) - int(first) + 1 for first, last in found)


async def test_a_lost_workers_partitions_go_to_who_has_their_copies_and_only_the_tail_is_read(
    settings: Settings, tmp_path: Path
) -> None:
    kafka = settings.kafka.model_copy(update={"partitions": PARTITIONS})
    settings = settings.model_copy(update={"kafka": kafka})
    store, ports = (tmp_path / "store").as_uri(), [free_port() for _ in range(3)]
    disks, logs = [tmp_path / f"disk-{n}" for n in range(3)], [tmp_path / f"log-{n}" for n in range(3)]
    environment = {
        "SILTSTONE_CHECKPOINTS__URL": store,
        "SILTSTONE_CHECKPOINTS__SECONDS": "1",
        "SILTSTONE_CHECKPOINTS__WARM": "1",
    }
    await ensure_topics(settings.kafka)
    with ExitStack() as stack:
        workers = [
            stack.enter_context(
                worker_process(
                    settings,
                    port,
                    disk,
                    environment_of_its_own=environment,
                    stderr=stack.enter_context(log.open("wb")),
                )
            )
            for port, disk, log in zip(ports, disks, logs, strict=True)
        ]
        await until(lambda: all(ready(port) for port in ports), alive=workers, seconds=180)
        expected = await say(settings, range(8))
        await all_found(workers[:1], expected)
        await until(lambda: all(idle(port) for port in ports), alive=workers)
        used = {partition_of(user, PARTITIONS) for user in USERS}
        checkpoints = Checkpoints(store)

        def copied() -> bool:
            """Each partition is once on another worker's disk, at its newest checkpoint."""
            copies = [WarmCopies(disk / "warm", checkpoints).all() for disk in disks]
            counted = Counter(partition for one in copies for partition in one)
            newest = {partition: (checkpoints.numbers(partition) or [0])[0] for partition in used}
            return counted == Counter(used) and all(
                copy.manifest.generation == newest[partition] for one in copies for partition, copy in one.items()
            )

        await until(copied, alive=workers)
        lost, before = held(disks[0]) - held(disks[1]) - held(disks[2]), [rewritten(log) for log in logs]
        assert lost
        workers[0].send_signal(signal.SIGKILL)
        workers[0].wait()
        await until(
            lambda: sum(map(takeovers, ports[1:])) == len(lost) and all(map(ready, ports[1:])), alive=workers[1:]
        )
        # What was asked before it was killed are accesses, in the log since the checkpoint: one event a user.
        assert sum(rewritten(log) for log in logs[1:]) - sum(before[1:]) <= len(USERS) // 3
        more = await say(settings, range(8, 10))
        await all_found(workers[1:2], expected | more)
        await until(lambda: all(idle(port) for port in ports[1:]), alive=workers[1:])
        for worker in workers[1:]:
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(PATIENCE) == 0
    counted = owned(settings, disks[1:])
    assert counted.keys() == expected | more
    assert set(counted.values()) == {1}


def owned(settings: Settings, disks: Sequence[Path]) -> Counter[str]:
    """The sources of memories of these workers; of what both have on their disks, the newer of the two."""
    found: Counter[str] = Counter()
    for disk in disks:
        found |= sources(settings, disk)
    return found
