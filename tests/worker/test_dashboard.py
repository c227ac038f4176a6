"""The dashboard of a running worker: its numbers, and dead letters mended on the real broker."""

from __future__ import annotations

import html
import re

import httpx
import orjson
import pytest

from schemas.topics import partition_of
from streams.app import Siltstone
from streams.doors.ui.session import COOKIE, form_token
from streams.kafka.bulk import producing
from streams.kafka.clients.newest_records import newest_records, record_at
from streams.telemetry.metrics import labelled
from tests.support.making import line
from tests.support.waiting import CLIENT_SECONDS, until

BROKEN = b'{"user_id": "ann", "session_id": "s", "role": "user", "content": "I live in Oslo"'


@pytest.fixture
async def http(worker: Siltstone) -> httpx.AsyncClient:
    base = f"http://127.0.0.1:{worker.api.port}"
    return httpx.AsyncClient(
        base_url=base, trust_env=False, timeout=CLIENT_SECONDS, headers={"accept": "text/html", "origin": base}
    )


async def produced(worker: Siltstone, *values: bytes) -> None:
    async with producing(worker.settings.kafka) as producer:
        for value in values:
            await producer.send(b"ann", value)
    await until(lambda: worker.hot.processed(worker.topics.conversations, producer.ends) == len(values), alive=worker)


async def test_a_dead_letter_is_shown_mended_and_produced_again(worker: Siltstone, http: httpx.AsyncClient) -> None:
    """With its bytes as text, its place and its reason; a value that still cannot be read says why."""
    async with http:
        assert "No dead letters" in (await http.get("/ui/dead-letters")).text
        await produced(worker, BROKEN, line(0, "ann", "user", 0))
        await until(lambda: sum(labelled(worker.metrics.dead_letters).values()) == 1, alive=worker)
        await worker.context.outbox.deliver()
        page = (await http.get("/ui/dead-letters")).text
        partition = partition_of("ann", worker.settings.kafka.partitions)
        assert f"{worker.topics.conversations}[{partition}]@0" in page
        assert "the value is not JSON" in page
        assert BROKEN.decode() in html.unescape(page)
        found = re.search(r'action="(/ui/dead-letters/\d+/\d+)"', page)
        assert found
        token = form_token(http.cookies[COOKIE])

        still = await http.post(found[1], data={"form_token": token, "value": BROKEN.decode()})
        assert (still.status_code, "It still cannot be read" in still.text) == (422, True)
        mended = await http.post(found[1], data={"form_token": token, "value": BROKEN.decode() + "}"})
        assert mended.status_code == 303
        after = (await http.get(mended.headers["location"])).text
        assert "the record has taken effect" in after
        assert f"produced again at {worker.topics.conversations}[{partition}]@2" in after
        (window,) = worker.service.sessions.window("ann", "s", None)
        assert [message.content for message in window.exchange.messages] == ["I live in Oslo"]

        elsewhere = re.sub(r"\d+$", "999", found[1])
        assert (await http.post(elsewhere, data={"form_token": token, "value": "{}"})).status_code == 404


async def test_the_newest_records_of_a_topic_are_read_and_no_more(worker: Siltstone) -> None:
    """Of all partitions; a topic that is not there has none, and is not made by asking."""
    kafka, topic = worker.settings.kafka, worker.topics.conversations
    async with producing(kafka) as producer:
        for number in range(7):
            user = "ann" if number % 2 else "bob"
            await producer.send(user.encode(), line(number, user, "user", number))
    found = await newest_records(kafka, topic, 5, lambda record: orjson.loads(record.value)["message_id"])
    assert sorted(found) == ["ann-3", "ann-5", "bob-2", "bob-4", "bob-6"]
    assert await newest_records(kafka, f"{topic}-none", 5, str) == []
    assert await record_at(kafka, topic, 99, 0) is None
    assert await record_at(kafka, topic, 0, 99) is None


async def test_the_overview_tells_rates_and_lag_as_they_were_each_second(
    worker: Siltstone, http: httpx.AsyncClient
) -> None:
    await produced(worker, *(line(number, "ann", "user", number) for number in range(4)))
    taken = len(list(worker.context.readings))
    await until(lambda: len(list(worker.context.readings)) >= taken + 2, alive=worker)
    async with http:
        report = (await http.get("/ui/worker", headers={"accept": "application/json"})).json()
        page = (await http.get("/ui/overview")).text
    assert report["ready"]
    assert report["totals"]["messages"] == 4
    assert report["partitions"] == list(range(worker.settings.kafka.partitions))
    assert set(report["lag"][worker.topics.conversations]) == {str(one) for one in report["partitions"]}
    assert "<b>Ready.</b>" in page
