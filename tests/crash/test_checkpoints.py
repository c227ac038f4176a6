"""A worker is killed and its disk lost, while it uploads a checkpoint; its successor is killed while it restores."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from schemas.settings import Settings
from streams.kafka.clients.broker import ensure_topics
from tests.crash.test_workers import all_found, idle, ready, say
from tests.support.object_store import Door, environment, make_bucket, s3_server
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE, until
from tests.support.workers import sources, worker_process

pytestmark = pytest.mark.slow


async def test_a_lost_disk_costs_nothing_though_upload_and_restore_are_cut_off(
    settings: Settings, tmp_path: Path
) -> None:
    """On S3, whose answers take a moment: lost = 0, doubled = 0."""
    one, two, other_disk = free_port(), free_port(), tmp_path / "other"
    await ensure_topics(settings.kafka)
    with s3_server() as address, Door(address) as door:
        make_bucket(address, "kept")
        store = {
            "SILTSTONE_CHECKPOINTS__URL": "s3://kept/state",
            "SILTSTONE_CHECKPOINTS__SECONDS": "1",
            **environment(door.address),
        }
        with worker_process(settings, one, environment_of_its_own=store) as first:
            await until(lambda: ready(one), alive=first)
            expected = await say(settings, range(8))
            await all_found([first], expected)
            await until(lambda: manifests(door) >= settings.kafka.partitions, alive=first)
            before = packs(door)
            expected |= await say(settings, range(8, 12))
            await until(lambda: packs(door) > before, alive=first, pace=0.001)
            first.send_signal(signal.SIGKILL)
            first.wait()
        shutil.rmtree(settings.data_dir)
        door.seconds = 0.3
        with worker_process(settings, two, other_disk, environment_of_its_own=store) as second:
            await until(lambda: list(other_disk.glob("restoring/*/files.restoring")), alive=second, pace=0.001)
            second.send_signal(signal.SIGKILL)
            second.wait()
        door.seconds = 0.0
        with worker_process(settings, two, other_disk, environment_of_its_own=store) as third:
            await until(lambda: ready(two), alive=third)
            expected |= await say(settings, range(12, 16))
            await all_found([third], expected)
            await until(lambda: idle(two), alive=third)
            third.send_signal(signal.SIGTERM)
            assert third.wait(PATIENCE) == 0
    counted = sources(settings, other_disk)
    assert counted.keys() == expected
    assert set(counted.values()) == {1}
    assert list(other_disk.glob("restoring/*")) == []


def manifests(door: Door) -> int:
    """How many partitions have had a checkpoint."""
    return len({path.split("/manifests/")[0] for method, path, _ in list(door.requests) if is_new(method, path)})


def is_new(method: str, path: str) -> bool:
    return method == "PUT" and "/manifests/" in path


def packs(door: Door) -> int:
    """How many packs were put."""
    return sum(method == "PUT" and "/packs/" in path for method, path, _ in list(door.requests))
