"""`siltstone rebuild-index`: FAISS files that are damaged, missing or stale, and shards that somebody holds."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from schemas.settings import LifecycleSettings, LongTermSettings
from tables.memories.shard import Shard
from tables.vectors.index import cell_of
from tables.vectors.manifest import Stamp, segment_files
from tables.vectors.segmented import SegmentedIndex
from tests.support.making import START, axis, promotion
from tests.support.quick_commands import siltstone
from tests.support.segments import copied, lose, put_back


def opened(data: Path, partition: int) -> Shard:
    folder = data / "shards" / str(partition)
    return Shard(partition, folder, "toy", 8, LongTermSettings(), LifecycleSettings())


def keep(shard: Shard, *places: int) -> None:
    """Memories that lie along these axes."""
    events = [promotion(str(place), f"m{place}") for place in places]
    shard.apply(events, {event.event_id: axis(int(event.text)) for event in events}, START)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Five shards with three memories each; of their files one is as it should be."""
    data = tmp_path / "data"
    for partition in range(5):
        shard = opened(data, partition)
        keep(shard, 1, 2)
        shard.close()
        folder = data / "shards" / str(partition)
        older = copied(folder)
        shard = opened(data, partition)
        keep(shard, 3)
        shard.close()
        if partition == 0:
            lose(folder)
        elif partition == 1:
            damaged = segment_files(folder)[0]
            damaged.write_bytes(damaged.read_bytes()[:200])
        elif partition == 2:
            put_back(folder, older)
        elif partition == 3:
            lose(folder)
            foreign = SegmentedIndex(folder, 8, "foreign")
            foreign.add(np.array([77]), np.array([cell_of("u")]), axis(5)[None])
            foreign.flush()
            foreign.publish(lambda _: Stamp(uuid.uuid4(), 1))
    return data


async def rebuilt(*words: str, code: int = 0) -> tuple[dict[str, Any], str]:
    result = await siltstone("rebuild-index", "--json", *words)
    assert result.returncode == code, result.stderr
    answer: dict[str, Any] = orjson.loads(result.stdout)
    return answer, result.stderr


def was(rebuilt: Sequence[dict[str, Any]]) -> dict[int, str]:
    assert all((one["rows"], one["model"], one["dimension"]) == (3, "toy", 8) for one in rebuilt)
    return {one["partition"]: one["was"] for one in rebuilt}


async def test_every_file_holds_the_catalogs_vectors_afterwards(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever model the settings name: the shards' own is taken. The next opening has nothing to add."""
    answer, _ = await rebuilt("--data", str(data))
    assert answer["held"] == []
    assert was(answer["rebuilt"]) == {0: "missing", 1: "damaged", 2: "stale", 3: "stale", 4: "in step"}
    caplog.set_level(logging.INFO, "tables.memories.shard")
    for partition in range(5):
        shard = opened(data, partition)
        memories = shard.memories_of("u")
        assert shard.similarities("u", axis(3), memories).tolist() == [0, 0, 1]
        assert shard.in_step()
        shard.close()
    assert caplog.records == []
    shown = await siltstone("rebuild-index", "--data", str(data), "--partition", "4")
    assert (shown.returncode, "in step" in shown.stdout, "toy (8)" in shown.stdout) == (0, True, True)


async def test_a_shard_that_somebody_holds_is_one_clear_line_and_the_others_are_rebuilt(data: Path) -> None:
    held = [opened(data, partition) for partition in (1, 3)]
    answer, errors = await rebuilt("--data", str(data), code=1)
    assert (answer["held"], sorted(was(answer["rebuilt"]))) == ([1, 3], [0, 2, 4])
    assert re.fullmatch(r"siltstone: shards 1, 3: process \d+ has it open: stop it first; .*\n", errors)
    only, errors = await rebuilt("--data", str(data), "--partition", "0", "--partition", "3", code=1)
    assert (only["held"], was(only["rebuilt"])) == ([3], {0: "in step"})
    for shard in held:
        shard.close()


async def test_what_is_not_there_is_one_clear_line(data: Path, tmp_path: Path) -> None:
    for words, reason in (
        (("--data", str(tmp_path / "nowhere")), "there are no shards in it"),
        (("--data", str(data), "--partition", "9"), "shard 9: there is none in .*: it has shards 0, 1, 2 and 2 more"),
    ):
        result = await siltstone("rebuild-index", *words)
        assert (result.returncode, len(result.stderr.strip().splitlines())) == (1, 1)
        assert re.search(reason, result.stderr)
    assert (await siltstone("rebuild-index", "--partition", "x")).returncode == 2
