"""docs/operations.md as it stands: a disk is lost, and memories are back; what was forgotten is in no checkpoint."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.settings import CheckpointsSettings, Settings
from streams.app import Siltstone
from streams.cli import running
from tests.support.api import api
from tests.support.making import until_it_is
from tests.support.ports import free_port
from tests.support.quick_commands import siltstone
from tests.support.workers import SILTSTONE, asked, worker_process

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
KEY = "The spare key lies under the blue stone"


def drill() -> list[list[str]]:
    """The words of each command of the drill, without `siltstone`."""
    block = PAGE.split("## The drill")[1].split("```console\n")[1].split("```")[0]
    words = [shlex.split(line) for line in block.splitlines() if not line.startswith("#")]
    assert all(one[0] == "siltstone" for one in words)
    return [one[1:] for one in words]


async def ready(port: int, process: subprocess.Popen[bytes]) -> None:
    async def is_ready() -> bool:
        assert process.poll() is None
        return bool((await asyncio.to_thread(asked, port, "/readyz")).get("ready"))

    await until_it_is(is_ready, 60)


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

    with worker_process(settings, port, lost, environment_of_its_own=environment) as process:
        await ready(port, process)
        await done(remember)
        assert "taken" in await done(now)
        assert "checkpoints are whole, every byte of them" in await done(verify)
    shutil.rmtree(lost)
    assert "Restored to" in await done(restore)
    assert worker == ["worker", "--data", "/srv/restored"]
    with worker_process(settings, port, restored, environment_of_its_own=environment) as process:
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


async def test_what_was_forgotten_is_in_no_object_after_the_term_and_the_receipt_says_so(
    settings: Settings, tmp_path: Path
) -> None:
    """Text and vector; the others' memories are still there."""
    store, term = tmp_path / "store", timedelta(seconds=6)
    kept = CheckpointsSettings(url=f"file://{store}", seconds=1).model_copy(update={"erase_within": term})
    settings = settings.model_copy(
        update={
            "checkpoints": kept,
            "long_term": settings.long_term.model_copy(update={"save_seconds": 0.5}),
        }
    )
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        await remembered(worker, "ann", "my secret hobby is falconry with Zephyrine")
        await remembered(worker, "bob", "tea")
        vector = np.asarray(
            (await worker.shards.models.current.embed(["my secret hobby is falconry with Zephyrine"]))[0]
        )
        secrets = [b"Zephyrine", np.asarray(vector, np.float32).tobytes()[:64]]

        async def is_kept() -> bool:
            return all(objects_with(store, secret) for secret in secrets)

        await until_it_is(is_kept, 30)
        async with api(worker) as http:
            assert (await http.delete("/v1/memories", params={"user_id": "ann"})).status_code == 202

            async def receipt() -> dict[str, Any]:
                answer: dict[str, Any] = (await http.get("/v1/erasures", params={"user_id": "ann"})).json()
                return answer

            async def begun() -> bool:
                return bool((await receipt())["commands"])

            await until_it_is(begun)
            assert (await receipt())["checkpoints"]["may_hold"] is True

            async def ended() -> bool:
                return (await receipt())["checkpoints"]["may_hold"] is False

            await until_it_is(ended, 60)
            assert [path for secret in secrets for path in objects_with(store, secret)] == []
            shown = await siltstone(
                "forget", "--user", "ann", "--report", "--url", f"http://127.0.0.1:{worker.api.port}",
                "--bootstrap-servers", settings.kafka.bootstrap_servers, COLUMNS="200",
                SILTSTONE_KAFKA__TOPIC_PREFIX=settings.kafka.topic_prefix,
                SILTSTONE_KAFKA__GROUP_ID=settings.kafka.group_id,
            )  # fmt: skip
            assert "holds it any more" in shown.stdout, shown.stderr
        assert [one.text for one in await worker.service.of_user("bob")] == ["tea"]
        assert objects_with(store, b"tea")


async def remembered(worker: Siltstone, user: str, text: str) -> None:
    async with api(worker) as http:
        answer = await http.post("/v1/memories", json={"user_id": user, "text": text})
        assert answer.status_code == 202, answer.text

    async def is_in() -> bool:
        return bool(await worker.service.of_user(user))

    await until_it_is(is_in)


def objects_with(store: Path, content: bytes) -> list[Path]:
    """Packs are not compressed."""
    return [path for path in store.rglob("*") if path.is_file() and content in path.read_bytes()]
