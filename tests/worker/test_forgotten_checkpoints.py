"""A forgotten user is in no object of the checkpoints' store after the term, and the receipt says so."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.settings import CheckpointsSettings, Settings
from streams.app import Siltstone
from streams.doors.cli import running
from tests.support.api import api
from tests.support.quick_commands import siltstone
from tests.support.waiting import until_it_is

pytestmark = pytest.mark.slow


async def test_what_was_forgotten_is_in_no_object_after_the_term_and_the_receipt_says_so(
    settings: Settings, tmp_path: Path
) -> None:
    """Text and vector; the others' memories are still there."""
    store, term = tmp_path / "store", timedelta(seconds=15)
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
            (await worker.shards.models.current.embed(["my secret hobby is falconry with Zephyrine"], of="question"))[
                0
            ]
        )
        secrets = [b"Zephyrine", np.asarray(vector, np.float32).tobytes()[:64]]

        async def is_kept() -> bool:
            return all(objects_with(store, secret) for secret in secrets)

        await until_it_is(is_kept, alive=worker)
        async with api(worker) as http:
            assert (await http.delete("/v1/memories", params={"user_id": "ann"})).status_code == 202

            async def receipt() -> dict[str, Any]:
                answer: dict[str, Any] = (await http.get("/v1/erasures", params={"user_id": "ann"})).json()
                return answer

            async def begun() -> bool:
                return bool((await receipt())["commands"])

            await until_it_is(begun, alive=worker)
            left = (await receipt())["checkpoints"]
            assert (left["may_hold"], left["store"]) == (True, "file://…/store")

            async def ended() -> bool:
                return (await receipt())["checkpoints"]["may_hold"] is False

            await until_it_is(ended, alive=worker)  # a command's deletions are settled after 30 s, see `SETTLED_MS`
            assert [path for secret in secrets for path in objects_with(store, secret)] == []
            shown = await siltstone(
                "forget", "--user", "ann", "--report", "--url", f"http://127.0.0.1:{worker.api.port}",
                "--bootstrap-servers", settings.kafka.bootstrap_servers, COLUMNS="200",
                SILTSTONE_KAFKA__TOPIC_PREFIX=settings.kafka.topic_prefix,
                SILTSTONE_KAFKA__GROUP_ID=settings.kafka.group_id,
            )  # fmt: skip
            assert "holds erased data any more" in shown.stdout, shown.stderr
        assert [one.text for one in await worker.service.of_user("bob")] == ["tea"]
        assert objects_with(store, b"tea")


async def remembered(worker: Siltstone, user: str, text: str) -> None:
    async with api(worker) as http:
        answer = await http.post("/v1/memories", json={"user_id": user, "text": text})
        assert answer.status_code == 202, answer.text

    async def is_in() -> bool:
        return bool(await worker.service.of_user(user))

    await until_it_is(is_in, alive=worker)


def objects_with(store: Path, content: bytes) -> list[Path]:
    """Packs are not compressed."""
    return [path for path in store.rglob("*") if path.is_file() and content in path.read_bytes()]
