"""`siltstone snapshot`: of a running worker, and of files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import orjson

from schemas.settings import Settings
from streams.doors.cli import running
from streams.telemetry.metrics import labelled
from tests.support.quick_commands import siltstone
from tests.support.waiting import until
from tests.worker.test_statistics import remember

NOBODY = "http://127.0.0.1:1"
#: Within the data directory.
COPY = Path("analytics", "siltstone.duckdb")


async def test_a_worker_makes_it_on_a_timer_and_when_asked(settings: Settings, tmp_path: Path) -> None:
    """With --data the directory must be the worker's; without a worker the files are read."""
    often = settings.model_copy(update={"analytics": settings.analytics.model_copy(update={"seconds": 0.2})})
    data = settings.data_dir
    async with running.started(often) as worker:
        await running.until_ready(worker)
        await remember(worker, 100, 50)
        await until(lambda: copied(data) == 2, alive=worker)
        await until(lambda: labelled(worker.metrics.snapshots).get(("unchanged",), 0) > 0, alive=worker)
        url = f"http://127.0.0.1:{worker.api.port}"
        made = await snapshot("--url", url)
        assert made["path"] == str(COPY), "the worker does not say where its directory is"
        assert await snapshot("--url", url, "--data", str(data)) == {**made, "path": str(data / COPY)}
        assert await snapshot("--url", url, SILTSTONE_DATA_DIR=str(data)) == {**made, "path": str(data / COPY)}
        assert (made["memories"], made["partitions"]) == (2, worker.shards.partitions())
        locked = await siltstone("snapshot", "--data", str(data), "--url", NOBODY)
        assert (locked.returncode, locked.stderr.startswith("siltstone: shard ")) == (1, True)
    made = await snapshot("--data", str(data), "--url", NOBODY)
    assert (made["memories"], made["path"]) == (2, str(data / COPY))
    alone = await siltstone("snapshot", "--url", NOBODY, SILTSTONE_DATA_DIR=str(data))
    assert (alone.returncode, "2 memories" in alone.stdout) == (0, True)
    nothing = await siltstone("snapshot", "--url", NOBODY)
    assert (nothing.returncode, "no worker answers" in nothing.stderr) == (1, True)


def copied(data: Path) -> int:
    """How many memories the analysts' copy has, which may have been made before there were any."""
    if not (data / COPY).exists():
        return 0
    with duckdb.connect(str(data / COPY), read_only=True) as db:
        (count,) = db.execute("SELECT count(*) FROM scores").fetchall()[0]
        return int(count)


async def snapshot(*words: str, **environment: str) -> dict[str, Any]:
    result = await siltstone("snapshot", "--json", *words, **environment)
    assert result.returncode == 0, result.stderr
    made: dict[str, Any] = orjson.loads(result.stdout)
    return made
