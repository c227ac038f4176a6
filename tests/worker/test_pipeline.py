"""The whole way, on the real broker, DuckDB, FAISS and HTTP: topic → window → promotion → shard → answer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiokafka
import orjson
import pytest
from aiokafka.admin import AIOKafkaAdminClient

from schemas.errors import BrokerEmptied, SettingsError, ShardNotHere
from schemas.settings import KafkaSettings, Settings
from schemas.topic_specs import MAX_RECORD_BYTES, MAX_VALUE_BYTES
from schemas.topics import REROUTED_HEADER, Topics, partition_of
from streams.app import Siltstone
from streams.doors.cli import running
from streams.kafka.broker_link import LOOK_SECONDS
from streams.kafka.bulk import producing
from streams.kafka.clients.broker import client_options, ensure_topics
from streams.telemetry.metrics import labelled
from tables.database.inspection import users
from tests.support.api import api
from tests.support.making import START, line
from tests.support.waiting import PATIENCE, until, until_it_is

SAMPLES = Path(__file__).parents[2] / "streams" / "samples"
Records = list[tuple[bytes | None, bytes | None]]


async def feed(worker: Siltstone, records: Records) -> None:
    """Produce, and wait until all of it is in the windows and the shards."""
    async with producing(worker.settings.kafka) as producer:
        for key, value in records:
            await producer.send(key, value)
    ends = producer.ends  # the worker's own records of silence come in between
    await until(lambda: worker.hot.processed(worker.topics.conversations, ends) == sum(ends.values()), alive=worker)
    await until(lambda: written(worker) >= promoted(worker), alive=worker)


def promoted(worker: Siltstone) -> int:
    return sum(n for (kind, _), n in labelled(worker.metrics.decisions).items() if kind == "promoted")


def written(worker: Siltstone) -> int:
    effects = labelled(worker.metrics.memories)
    return sum(effects.get((name,), 0) for name in ("new", "merged", "repeated"))


def samples() -> Records:
    lines = (SAMPLES / "chats.jsonl").read_bytes().splitlines()
    return [(orjson.loads(text)["user_id"].encode(), text) for text in lines]


@pytest.mark.every_time
@pytest.mark.real_model
async def test_chats_become_memories_that_answer_in_both_languages(worker: Siltstone) -> None:
    """Every bundled question finds its exchange first; the same input twice makes no memory twice."""
    await feed(worker, samples())
    count = (await worker.service.state_counts(worker.clock.now())).values()
    async with api(worker) as client:
        for question in orjson.loads((SAMPLES / "questions.json").read_bytes()):
            body = {
                "user_id": question["user_id"],
                "query": question["question"],
                "topK": 3,
                "includeShortTerm": False,
            }
            results = (await client.post("/v1/search", json=body)).json()["results"]
            assert set(question["message_ids"]) <= set(results[0]["message_ids"]), question["question"]
            assert results == sorted(results, key=lambda hit: -hit["relevance"])
            assert {hit["state"] for hit in results} == {"active"}
    decided = promoted(worker)
    await feed(worker, samples())
    assert promoted(worker) == decided  # the ids are in the windows, or the memories in the shards
    assert sum((await worker.service.state_counts(worker.clock.now())).values()) == sum(count)


async def test_context_holds_exchanges_memories_and_a_prompt(worker: Siltstone) -> None:
    await feed(worker, samples())
    async with api(worker) as client:
        parameters = {"user_id": "maya", "session_id": "maya-1031", "q": "what am I allergic to?"}
        answer = (await client.get("/v1/context", params=parameters)).json()
        assert len(answer["memories"]) == 3
        assert answer["exchanges"] == sorted(answer["exchanges"], key=lambda e: e["started_at"])
        assert answer["memories"][0]["memory"].splitlines()[0] in answer["prompt"]
        assert answer["exchanges"][-1]["messages"][0]["content"] in answer["prompt"]


BAD: list[tuple[str, bytes | None]] = [
    ("not_json", b"{oops"),
    ("not_utf8", b'{"a": "\xff"}'),
    ("not_an_object", b"[1, 2]"),
    ("null_value", None),
    ("invalid_fields", b'{"user_id": "u"}'),
    ("invalid_fields", line(1, "u", "robot", 0)),
    ("invalid_fields", line(1, "u", "user", 0, timestamp="from nowhere")),
    ("invalid_fields", line(1, "u", "user", 0, content="x" * 40_000)),
    ("invalid_fields", line(1, "u", "user", 0, content=[7, {}])),
]


@pytest.mark.every_time
async def test_bad_input_becomes_dead_letters_and_disturbs_nothing(worker: Siltstone) -> None:
    """Each bad record is one dead letter: the original bytes, its coordinates, and a reason."""
    good: Records = [(b"u", line(i, "u", ("user", "assistant")[i % 2], i)) for i in range(4)]
    mixed = [record for i, bad in enumerate(BAD) for record in (*good[i : i + 1], (b"u", bad[1]))]
    await feed(worker, mixed)
    letters = await read(worker.settings, worker.topics.dead_letters, len(BAD))
    assert [(dict(letter.headers)["error.type"].decode(), letter.value) for letter in letters] == BAD
    for letter in letters:
        headers = {name: value.decode() for name, value in letter.headers}
        assert headers["source.topic"] == worker.topics.conversations
        assert headers["error.message"]
        assert {"source.partition", "source.offset", "failed.at"} <= headers.keys()
    assert labelled(worker.metrics.messages) == {(): 4}
    assert sum(labelled(worker.metrics.dead_letters).values()) == len(BAD)


async def test_a_wrong_key_is_mended_once(worker: Siltstone) -> None:
    """A message under another key is produced again with its user's, and counted."""
    async with producing(worker.settings.kafka) as producer:
        await producer.send(b"somebody else", line(1, "u", "user", 0))
        await producer.send(None, line(2, "u", "assistant", 3))
    await until(lambda: labelled(worker.metrics.messages) == {(): 2}, alive=worker)
    assert labelled(worker.metrics.rerouted) == {(worker.topics.conversations,): 2}
    records = await read(worker.settings, worker.topics.conversations, 4)
    mended = [record for record in records if record.headers]
    assert {record.key for record in mended} == {b"u"}
    assert all(record.headers[0][0] == REROUTED_HEADER for record in mended)


async def test_a_record_that_is_produced_again_keeps_its_time(worker: Siltstone) -> None:
    """Else a message without a time of its own would have another one, and another id, at each attempt."""
    said = orjson.loads(line(1, "u", "user", 0))
    del said["timestamp"], said["message_id"]
    async with producing(worker.settings.kafka) as producer:
        await producer.send(b"somebody else", orjson.dumps(said))
    first, again = await read(worker.settings, worker.topics.conversations, 2)
    await until(lambda: labelled(worker.metrics.messages) == {(): 1}, alive=worker)
    assert again.headers[0][0] == REROUTED_HEADER
    assert again.timestamp == first.timestamp
    ((_, session),) = worker.intake.windows.all_sessions()
    assert [message.timestamp for message in session.open] == [first.timestamp]


@pytest.mark.parametrize("bytes_sent", [MAX_VALUE_BYTES, 2 * MAX_RECORD_BYTES])
async def test_a_record_that_the_broker_refuses_for_good_is_a_dead_letter_and_holds_up_nothing(
    worker: Siltstone, bytes_sent: int
) -> None:
    outbox = worker.hot.outbox
    outbox.post(worker.topics.long_term, b"x" * bytes_sent, key=b"k" * (MAX_RECORD_BYTES - MAX_VALUE_BYTES))
    await feed(worker, [(b"u", line(i, "u", ("user", "assistant")[i % 2], i)) for i in range(4)])
    await until(lambda: sum(worker.hot.committed(worker.topics.conversations).values()) == 4, alive=worker)
    (letter,) = await read(worker.settings, worker.topics.dead_letters, 1)
    headers = {name: value.decode() for name, value in letter.headers}
    assert (headers["source.topic"], headers["error.type"]) == (worker.topics.long_term, "refused")
    assert letter.value == b"x" * MAX_VALUE_BYTES
    assert labelled(worker.metrics.refused) == {(worker.topics.long_term, "MessageSizeTooLargeError"): 1}


async def test_a_message_can_be_posted_and_read_back(worker: Siltstone) -> None:
    async with api(worker) as client:
        body = {"user_id": "u", "session_id": "s", "role": "user", "content": "hi", "timestamp": START}
        answer = await client.post("/v1/messages", json=body)
        assert answer.status_code == 202
        await until(lambda: labelled(worker.metrics.messages) == {(): 1}, alive=worker)
        shown = (await client.get("/v1/sessions/s/exchanges", params={"user_id": "u"})).json()["exchanges"]
        assert shown[0]["messages"][0]["message_id"] == answer.json()["event_id"]
        assert shown[0]["open"]
        for wrong in ({**body, "role": "robot"}, {**body, "timestamp": "soon"}, {"user_id": "u"}):
            assert (await client.post("/v1/messages", json=wrong)).status_code == 422
        metrics = (await client.get("/metrics")).text
        assert "siltstone_messages_total 1.0" in metrics
        assert (await client.get("/readyz")).status_code == 200
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        assert (await client.get("/docs")).status_code == 200


@pytest.mark.every_time
async def test_another_user_sees_nothing(worker: Siltstone) -> None:
    await feed(worker, samples())
    async with api(worker) as client:
        body = {"user_id": "nobody", "query": "walnuts", "include_all": True}
        answer = (await client.post("/v1/search", json=body)).json()
        assert (answer["results"], answer["better_elsewhere"]) == ([], {})
        shown = await client.get("/v1/sessions/maya-1031/exchanges", params={"user_id": "tom"})
        assert shown.json()["exchanges"] == []


async def test_users_of_the_shards_lie_by_the_number_of_partitions(settings: Settings) -> None:
    """Where topics disagree, they say which number is right."""
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        await feed(worker, samples())
        assert users(settings.data_dir) == []  # the worker has them
    stored = users(settings.data_dir)
    assert stored
    assert all(partition_of(user, settings.kafka.partitions) == partition for user, partition in stored)


async def test_windows_survive_a_restart(settings: Settings) -> None:
    """A worker that takes over has the windows of the one before, and counts nothing twice."""
    records: Records = [(b"u", line(i, "u", ("user", "assistant")[i % 2], i)) for i in range(7)]
    async with running.started(settings) as first:
        await running.until_ready(first)
        await feed(first, records)
        before = list(first.intake.windows.all_sessions())
    async with running.started(settings) as second:
        await running.until_ready(second)
        assert list(second.intake.windows.all_sessions()) == before
        partition, session = before[0]
        assert len(second.intake.windows.window(partition, session)) == 3
        assert labelled(second.metrics.messages) == {(): 0}


async def read(settings: Settings, topic: str, count: int) -> list[Any]:
    """The first records of a topic, in the order of their time."""
    consumer = aiokafka.AIOKafkaConsumer(
        topic, bootstrap_servers=settings.kafka.bootstrap_servers, auto_offset_reset="earliest"
    )
    await consumer.start()
    try:
        found: list[Any] = []
        async with asyncio.timeout(PATIENCE):
            while len(found) < count:
                batches = await consumer.getmany(timeout_ms=1_000)
                found += [record for batch in batches.values() for record in batch]
    finally:
        await consumer.stop()
    return sorted(found, key=lambda record: (record.partition, record.offset))


def test_topic_names_carry_the_prefix() -> None:
    assert Topics.with_prefix("a.").all()[0] == "a.conversations"


async def test_a_topic_that_is_gone_starts_the_worker_anew_and_does_not_wait_for_it(worker: Siltstone) -> None:
    """A producer would wait for it for twenty minutes. It is looked for where a commit waits for the broker."""
    outbox, lost = worker.hot.outbox, [worker.topics.transitions]
    await delete(worker.settings.kafka, lost)
    await worker.broker.look_for_topics()  # nothing waits
    outbox._flushing_since = outbox._monotonic() - LOOK_SECONDS
    with pytest.raises(BrokerEmptied, match=r"lost its topics \(.*transitions\)"):
        await worker.broker.look_for_topics()
    outbox._flushing_since = None


async def test_where_no_topics_are_created_each_has_to_be_there_at_the_start(settings: Settings) -> None:
    """A record for it, and all behind that, would wait."""
    await ensure_topics(settings.kafka)
    await delete(settings.kafka, [Topics.with_prefix(settings.kafka.topic_prefix).dead_letters])
    kafka = settings.kafka.model_copy(update={"create_topics": False})
    with pytest.raises(SettingsError, match=r"topic .*dead-letters does not exist: create it"):
        async with running.started(settings.model_copy(update={"kafka": kafka})):
            pass


async def delete(kafka: KafkaSettings, topics: list[str]) -> None:
    """They are gone: Kafka answers before it has deleted them."""
    admin = AIOKafkaAdminClient(**client_options(kafka))
    await admin.start()

    async def gone() -> bool:
        return not set(topics) & set(await admin.list_topics())

    try:
        await admin.delete_topics(topics)
        await until_it_is(gone)
    finally:
        await admin.close()


async def test_statistics_of_moving_partitions_are_nobodys(
    worker: Siltstone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker's are of its own shards; it is not asked for them in our name."""

    async def moved(*_: Any, **__: Any) -> Any:
        raise ShardNotHere(0, "its partition has just moved")

    monkeypatch.setattr(worker.shards, "call", moved)
    monkeypatch.setattr(worker.forwarding, "_owner", lambda _: "http://127.0.0.1:1")
    async with api(worker) as client:
        for ask in ("states", "transitions", "scores"):
            answer = await client.get(f"/v1/stats/{ask}")
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            assert "partitions are moving" in answer.json()["detail"]
