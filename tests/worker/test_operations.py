"""docs/backup.md as it stands: a disk is lost, and the memories are back."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from schemas.settings import Settings
from tests.support.ports import free_port
from tests.support.quick_commands import siltstone
from tests.support.waiting import until_it_is
from tests.support.workers import SILTSTONE, asked, worker_process

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "docs" / "backup.md").read_text(encoding="utf-8")
KEY = "The spare key lies under the blue stone"


def drill() -> list[list[str]]:
    """The words of each command of the drill, without `siltstone`."""
    block = PAGE.split("## The drill")[1].split("```console\n")[1].split("```")[0]
    words = [shlex.split(line) for line in block.splitlines() if not line.startswith("#")]
    assert all(one[0] == "siltstone" for one in words)
    return [one[1:] for one in words]


async def ready(port: int, process: subprocess.Popen[bytes]) -> None:
    async def is_ready() -> bool:
        return bool((await asyncio.to_thread(asked, port, "/readyz")).get("ready"))

    await until_it_is(is_ready, alive=process)


async def test_the_drill(settings: Settings, tmp_path: Path) -> None:
    """The words are the page's, but for the folder. What is restored opens with `siltstone dev` as well."""
    remember, now, verify, restore, worker, search = drill()
    lost, restored, port = tmp_path / "lost", tmp_path / "restored", free_port()
    environment = {
        "SILTSTONE_CHECKPOINTS__URL": f"file://{tmp_path / 'store'}",
        "SILTSTONE_CHECKPOINTS__SECONDS": "1000",
        "SILTSTONE_URL": f"http://127.0.0.1:{port}",
        "COLUMNS": "200",
    }

    async def done(words: list[str], *, data: Path = restored) -> str:
        words = [str(data) if word == "/srv/restored" else word for word in words]
        result = await siltstone(*words, **environment)
        assert (result.returncode, result.stderr) == (0, ""), words
        return result.stdout

    with worker_process(settings, port, lost, program=SILTSTONE, environment_of_its_own=environment) as process:
        await ready(port, process)
        await done(remember)
        assert "taken" in await done(now)
        assert "checkpoints are intact, to the last byte" in await done(verify)
    shutil.rmtree(lost)
    assert "Restored to" in await done(restore)
    assert worker == ["worker", "--data", "/srv/restored"]
    with worker_process(settings, port, restored, program=SILTSTONE, environment_of_its_own=environment) as process:
        await ready(port, process)
        assert KEY in await done(search)
    await done(restore, data=tmp_path / "alone")
    with dev(tmp_path / "alone", port) as process:
        await ready(port, process)
        assert KEY in await done(search)


@contextmanager
def dev(data: Path, port: int) -> Any:
    command = [*SILTSTONE, "dev", "--data", str(data), "--port", str(port)]
    process = subprocess.Popen(command, env=dict(os.environ), stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)
