"""`siltstone forget`: what was erased, what is left, and until when, on the real broker."""

from __future__ import annotations

from typing import Any

import httpx
import orjson
import pytest
from click.testing import CliRunner

from schemas.settings import Settings
from schemas.topics import Topics, key_of
from streams.app import Siltstone
from streams.doors.cli import cli
from streams.doors.cli.forget import _until
from streams.forgetting.kafka_remains import RecordSpan, Remains, remains_of
from streams.kafka.bulk import producing
from tests.support.making import line
from tests.support.ports import free_port
from tests.support.quick_commands import siltstone
from tests.support.waiting import until_it_is

NOTHING_LEFT = dict.fromkeys(
    (
        "memories", "archive", "vectors", "history", "links", "near_copies", "window_exchanges",
        "short_term_memories", "waiting_summaries", "day_files",
    ),
    0,
)  # fmt: skip


async def receipt(http: httpx.AsyncClient, user: str) -> dict[str, Any]:
    found: dict[str, Any] = (await http.get("/v1/erasures", params={"user_id": user})).raise_for_status().json()
    return found


async def test_forgetting_gives_a_receipt_and_a_report_lists_what_kafka_still_holds(
    worker: Siltstone, http: httpx.AsyncClient
) -> None:
    """Counts by table and place; of the topics those of this user alone, with a dead letter of his."""
    topics, kafka = worker.topics, worker.settings.kafka
    async with producing(kafka) as producer:
        for i in range(4):
            await producer.send(b"ann", line(i, "ann", ("user", "assistant")[i % 2], i))
        await producer.send(b"bob", line(0, "bob", "user", 0))
        await producer.send(b"?", orjson.dumps({"user_id": "ann", "session_id": "s", "role": "nobody"}))
    await http.post("/v1/memories", json={"user_id": "ann", "text": "tea"})

    async def there() -> bool:
        left = (await receipt(http, "ann"))["left"]
        return bool(left["memories"] == left["vectors"] == 1 and left["window_exchanges"] == 2)

    await until_it_is(there, alive=worker)
    words = ("forget", "--user", "ann", "--url", f"http://127.0.0.1:{worker.api.port}", "--json")
    names = {"SILTSTONE_KAFKA__TOPIC_PREFIX": kafka.topic_prefix, "SILTSTONE_KAFKA__GROUP_ID": kafka.group_id}
    done = await siltstone(*words, "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    given = orjson.loads(done.stdout)
    assert (len(given["commands"]), given["commands"][0]["whole_user"], given["memories_erased"]) == (1, True, 1)
    assert given["worker"] == worker.health.url

    async def gone() -> bool:
        return bool((await receipt(http, "ann"))["left"] == NOTHING_LEFT)

    await until_it_is(gone, alive=worker)
    told = await siltstone(*words, "--report", "--bootstrap-servers", kafka.bootstrap_servers, **names)
    assert (told.returncode, told.stderr) == (0, "")
    remains = {one["topic"]: one for one in orjson.loads(told.stdout)["kafka"]}
    records = {name: remains[getattr(topics, name)]["records"] for name in ("conversations", "long_term")}
    assert records == {"conversations": 5, "long_term": 2}
    assert remains[topics.dead_letters]["records"] == 1
    assert remains[topics.long_term]["newest"]["offset"] > remains[topics.long_term]["oldest"]["offset"]
    shown = await siltstone(
        *words[:-1], "--report", "--bootstrap-servers", kafka.bootstrap_servers, COLUMNS="100", **names
    )
    assert all(
        word in shown.stdout
        for word in ("forgotten: all data of ann", "Remaining records in Kafka", "window_exchanges")
    )


async def test_who_is_not_known_is_said_in_one_line(worker: Siltstone) -> None:
    kafka = worker.settings.kafka
    words = ("forget", "--user", "nobody", "--url", f"http://127.0.0.1:{worker.api.port}")
    result = await siltstone(*words, "--yes")
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert "the worker has no data of user nobody: correct the id" in result.stderr
    names = {"SILTSTONE_KAFKA__TOPIC_PREFIX": kafka.topic_prefix, "SILTSTONE_KAFKA__GROUP_ID": kafka.group_id}
    result = await siltstone(*words, "--report", "--bootstrap-servers", kafka.bootstrap_servers, **names)
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert "neither the worker nor Kafka has data of user nobody" in result.stderr
    nowhere = ("--bootstrap-servers", f"127.0.0.1:{free_port()}")
    result = await siltstone(*words, "--report", *nowhere)
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert "siltstone: no Kafka broker answers at" in result.stderr


async def test_without_a_worker_there_is_one_line() -> None:
    result = await siltstone("forget", "--user", "ann", "--yes", "--url", f"http://127.0.0.1:{free_port()}")
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert "no worker answers at" in result.stderr


@pytest.mark.parametrize("words", [[], ["--user", ""], ["--user", "ann", "--timeout", "-1"]])
def test_wrong_usage_is_said(words: list[str]) -> None:
    result = CliRunner().invoke(cli, ["forget", *words])
    assert (result.exit_code, "Error: " in result.output) == (2, True)


@pytest.mark.parametrize(
    ("retention", "compacted", "ends_at", "said"),
    [
        (1000, False, 1500, "not before"),
        (-1, False, None, "kept for ever: set retention.ms"),
        (None, False, None, "unknown: check the topic's retention.ms"),
        (1000, True, None, "the broker compacts the topic"),
    ],
)
def test_when_retention_ends_is_said(retention: int | None, compacted: bool, ends_at: int | None, said: str) -> None:
    """And what to do where it never does."""
    span = RecordSpan(0, 7, 500)
    remains = Remains("t", 1, span, span, retention, compacted)
    assert remains.ends_at == ends_at
    row = {"records": 1, "compacted": compacted, "retention_ms": retention, "retention_ends": "then"}
    assert _until(row).startswith(said)
    assert _until(row | {"records": 0}) == ""


async def test_another_users_records_are_not_listed_though_they_name_this_one(settings: Settings) -> None:
    """An id that is part of another's, or of a text, is not the user's."""
    from streams.kafka.clients.broker import ensure_topics

    await ensure_topics(settings.kafka)
    async with producing(settings.kafka) as producer:
        await producer.send(key_of("annabel"), line(0, "annabel", "user", 0, content="ann said so"))
    names = Topics.with_prefix(settings.kafka.topic_prefix)
    found = {one.topic: one.records for one in await remains_of(settings.kafka, "ann")}
    assert (set(names.all()) <= found.keys(), sum(found.values())) == (True, 0)
