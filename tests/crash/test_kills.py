"""Workers that are killed again and again, at chosen points and at any instant, end where an undisturbed one does."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from pathlib import Path

import pytest

from schemas.settings import Settings
from streams.kafka.clients.broker import ensure_topics
from tests.crash.chatter import portions, produce
from tests.crash.holdings import assert_summaries_are_of_their_requests
from tests.crash.lives import GAP_SECONDS, assert_equal, living, of_its_own, peaceful_end, undisturbed
from tests.crash.points import POINTS, Point
from tests.support.ports import free_port
from tests.support.waiting import until
from tests.support.workers import asked

pytestmark = [pytest.mark.slow, pytest.mark.soak]

#: Each with a part of the points, and with as many kills at any instant.
LIVES = 10
PORTION = 250


async def killed_at_a_point(settings: Settings, point: Point, mark: Path) -> None:
    """It writes its mark when it is killed there, and not when it dies of anything else."""
    port = free_port()
    program = [sys.executable, "-m", "tests.crash.points", point.name, str(point.nth), str(mark)]
    with living(settings, port, program) as worker:
        if point.name.startswith("an orderly stop"):
            await until(lambda: asked(port, "/readyz").get("ready"), alive=worker)
            worker.send_signal(signal.SIGTERM)
        await until(lambda: worker.poll() is not None)
        assert worker.returncode == -signal.SIGKILL


async def killed_at_any_instant(settings: Settings, seconds: float) -> None:
    with living(settings, free_port()) as worker:
        await asyncio.sleep(seconds)
        assert worker.poll() is None
        worker.kill()
        await asyncio.to_thread(worker.wait)


def damage_an_index(data: Path, chance: random.Random) -> None:
    """Cut a segment in half, as a disk might that was full or lost power."""
    if files := sorted(data.glob("shards/*/segments/*.ivf")):
        cut = chance.choice(files)
        cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])


@pytest.mark.parametrize("life", range(LIVES))
async def test_a_life_of_kills_ends_as_an_undisturbed_one(settings: Settings, life: int, tmp_path: Path) -> None:
    """Every point in one life or another, and as many kills at any instant, with halved indexes in between."""
    chance = random.Random(life)
    deaths: list[Point | None] = [*POINTS[life::LIVES]]
    deaths += [None] * len(deaths)
    chance.shuffle(deaths)
    said = portions(life, len(deaths) + 1, PORTION)
    expected = await undisturbed(of_its_own(settings, tmp_path / "undisturbed"), said)

    disturbed = of_its_own(settings, tmp_path / "disturbed")
    await ensure_topics(disturbed.kafka)
    for number, (death, records) in enumerate(zip(deaths, said, strict=False)):
        await produce(disturbed, records)
        if death is None:
            await killed_at_any_instant(disturbed, chance.uniform(1, 9))
        else:
            await killed_at_a_point(disturbed, death, mark := tmp_path / f"mark-{number}")
            assert mark.exists(), death.name
        if chance.random() < 0.3:
            damage_an_index(disturbed.data_dir, chance)
    await produce(disturbed, said[-1])
    assert_equal(await peaceful_end(disturbed, len(said)), expected)
    await assert_summaries_are_of_their_requests(disturbed, GAP_SECONDS)
