"""Two workers that ask for tokens: what one forwards, the other decides on by the caller's own token."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from schemas.settings import AccessSettings, Settings
from schemas.tokens import Scope
from schemas.topics import partition_of
from streams.doors.cli import running
from streams.kafka.clients.broker import ensure_topics
from tests.support.api import api
from tests.support.groups import side_by_side
from tests.support.tokens import known, made
from tests.support.waiting import until

pytestmark = pytest.mark.slow

PARTITIONS = 4


async def test_a_bound_token_is_answered_by_the_owner_and_opens_nobody_elses(
    settings: Settings, tmp_path: Path
) -> None:
    """Whichever worker is asked. With `read` alone it forwards no write."""
    settings = side_by_side(settings)
    settings = settings.model_copy(
        update={
            "access": AccessSettings(tokens=True),
            "kafka": settings.kafka.model_copy(update={"partitions": PARTITIONS}),
        }
    )
    await ensure_topics(settings.kafka)
    async with AsyncExitStack() as stack:
        workers = [
            await stack.enter_async_context(
                running.started(settings.model_copy(update={"data_dir": tmp_path / name}))
            )
            for name in ("one", "two")
        ]
        await until(
            lambda: (
                all(one.health.ready for one in workers)
                and sorted(len(one.shards.partitions()) for one in workers) == [PARTITIONS // 2] * 2
            ),
            alive=workers,
        )
        clients = [await stack.enter_async_context(api(one)) for one in workers]
        # A user of the second worker, asked about at the first; and another of the second, whose token it is not.
        at_second = [
            name for name in map(str, range(200)) if partition_of(name, PARTITIONS) in workers[1].shards.partitions()
        ]
        user, other = at_second[:2]
        _, bound = await made(settings, user)
        _, others = await made(settings, other)
        _, reader = await made(settings, user, Scope.READ)
        for client in clients:
            for headers in (bound, others, reader):
                await known(client, headers)
        wrong, right = clients
        text, wait = {"text": "I live in Oslo"}, {"wait": "applied"}
        written = await wrong.post("/v1/memories", headers=bound, params=wait, json=text)
        assert written.status_code == 202, written.text
        path = f"/v1/memories/{written.json()['event_id']}"
        for client in (wrong, right):
            assert (await client.get(path, headers=bound)).json()["memory"] == "I live in Oslo"
            assert (await client.get("/v1/memories", headers=reader)).json()["total"] == 1
            refused = [
                await client.get(path, headers=others),
                await client.get(path, headers=others, params={"user_id": user}),
                await client.get("/v1/memories", headers=others, params={"user_id": user}),
                await client.post("/v1/search", headers=others, json={"user_id": user, "query": "Oslo"}),
                # Nor does the header that a worker sends make a caller a worker.
                await client.get(path, headers={**others, "x-siltstone-forwarded": "1"}, params={"user_id": user}),
            ]
            assert {answer.status_code for answer in refused} == {404}
            assert (await client.get("/v1/memories", headers=others)).json()["total"] == 0
            assert (await client.delete(path, headers=reader)).status_code == 403
            assert (await client.get(path)).status_code == 401
