"""Two workers, and ids that an address has to escape: what is asked at the wrong one is about the same user there."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from urllib.parse import quote, unquote

import httpx
import pytest

from schemas.settings import Settings
from schemas.topics import partition_of
from streams.app import Siltstone
from streams.doors.cli.client import session_path
from streams.kafka.clients.broker import ensure_topics
from tests.support.api import api
from tests.support.groups import side_by_side
from tests.support.hostile_ids import HOSTILE
from tests.worker.test_moving import PARTITIONS, at_work, settled

pytestmark = pytest.mark.slow


def theirs_like(name: str, partitions: set[int]) -> str:
    """An id with this in it, of one of these partitions."""
    return next(one for n in count() if partition_of(one := f"{name}{n}"[-256:], PARTITIONS) in partitions)


async def remembered(http: httpx.AsyncClient, user: str) -> None:
    told = {"user_id": user, "text": "I live in Oslo"}
    answer = await http.post("/v1/memories", params={"wait": "applied"}, json=told)
    assert (answer.status_code, answer.json().get("applied")) == (202, True), answer.text


async def texts(worker: Siltstone, user: str) -> list[str]:
    return [memory.text for memory in await worker.service.of_user(user)]


async def test_an_id_is_the_same_user_and_session_whichever_worker_is_asked(
    settings: Settings, tmp_path: Path
) -> None:
    """Also for what cannot be undone: whose id is another's, read once more, loses nothing."""
    settings = side_by_side(settings)
    settings = settings.model_copy(update={"kafka": settings.kafka.model_copy(update={"partitions": PARTITIONS})})
    await ensure_topics(settings.kafka)
    async with at_work(settings, tmp_path / "one") as first, at_work(settings, tmp_path / "two") as second:
        _, theirs = await settled(first, second)
        async with api(first) as http:
            for name in HOSTILE:
                user = theirs_like(name, theirs)
                other = unquote(user)
                await remembered(http, user)
                listed = (await http.get("/v1/memories", params={"user_id": user})).json()
                assert (listed["total"], await texts(second, user)) == (1, ["I live in Oslo"])
                said = {"user_id": user, "session_id": name, "role": "user", "content": "hello"}
                assert (await http.post("/v1/messages", params={"wait": "applied"}, json=said)).status_code == 202
                shown = await http.get(session_path(name, "exchanges"), params={"user_id": user})
                ended = await http.post(session_path(name, "end"), json={"user_id": user})
                if unaddressed := "\n" in name:  # no route takes the end of a line
                    assert (shown.status_code, ended.status_code) == (404, 404)
                else:
                    assert (shown.status_code, ended.status_code) == (200, 202), (shown.text, ended.text)
                    assert [shown.json()["session_id"], len(shown.json()["exchanges"])] == [name, 1]

                if other != user:
                    await remembered(http, other)
                deleted = await http.delete(f"/v2/entities/user/{quote(user, safe='').replace('.', '%2E')}/")
                assert deleted.status_code == (404 if unaddressed else 200), deleted.text
                assert await texts(second, user) == (["I live in Oslo"] if unaddressed else [])
                if other != user:
                    owner = second if partition_of(other, PARTITIONS) in theirs else first
                    assert await texts(owner, other) == ["I live in Oslo"]
