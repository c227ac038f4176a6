"""Two workers and a browser: the one that is asked looks at host and page, the owner answers."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from schemas.settings import Settings
from schemas.topics import partition_of
from streams.kafka.clients.broker import ensure_topics
from tests.support.api import api
from tests.support.groups import side_by_side
from tests.worker.test_moving import PARTITIONS, at_work, settled

pytestmark = pytest.mark.slow


async def test_a_page_of_the_worker_that_is_asked_reaches_the_owner_and_no_other_page_does(
    settings: Settings, tmp_path: Path
) -> None:
    """`Host` and `Origin` are those of the first worker, which the owner would refuse; it is not told them."""
    settings = side_by_side(settings)
    settings = settings.model_copy(
        update={
            "kafka": settings.kafka.model_copy(update={"partitions": PARTITIONS}),
            "http": settings.http.model_copy(update={"allowed_hosts": ("memory.example",)}),
        }
    )
    alone = settings.model_copy(update={"http": settings.http.model_copy(update={"allowed_hosts": ()})})
    await ensure_topics(settings.kafka)
    async with at_work(settings, tmp_path / "one") as first, at_work(alone, tmp_path / "two") as second:
        _, theirs = await settled(first, second)
        user = next(f"user-{n}" for n in count() if partition_of(f"user-{n}", PARTITIONS) in theirs)
        own = f"127.0.0.1:{first.api.port}"
        async with api(first) as http:
            for page in (
                {"Origin": f"http://{own}", "Sec-Fetch-Site": "same-origin"},
                {"Host": "memory.example", "Origin": "https://memory.example"},
                {"Host": f"localhost:{first.api.port}", "Origin": f"http://localhost:{first.api.port}"},
            ):
                told = {"user_id": user, "text": f"said at {page['Origin']}"}
                written = await http.post("/v1/memories", headers=page, params={"wait": "applied"}, json=told)
                assert (written.status_code, written.json().get("applied")) == (202, True), written.text
            held = {memory.text for memory in await second.service.of_user(user)}
            assert len(held) == 3
            for headers, status in (
                ({"Origin": "http://evil.example"}, 403),
                ({"Origin": f"http://127.0.0.1:{second.api.port}"}, 403),
                ({"Sec-Fetch-Site": "cross-site"}, 403),
                ({"Host": "evil.example"}, 421),
                ({"Origin": "http://evil.example", "x-siltstone-forwarded": "1"}, 403),
            ):
                listed = await http.get("/v1/memories", headers=headers, params={"user_id": user})
                refused = await http.post("/v1/memories", headers=headers, json={"user_id": user, "text": "no"})
                assert (listed.status_code, refused.status_code) == (status, status)
        assert {memory.text for memory in await second.service.of_user(user)} == held
