"""`siltstone replay`: what a worker made of its topics, made once more beside it, on the real broker."""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

import aiokafka
import duckdb
import orjson
import pytest

from schemas.events import Archive, Edit, Forget, ForgetUser, Link, LongTermEvent, Pin, Promotion, Restore, Touch
from schemas.ids import memory_id
from schemas.settings import LifecycleSettings, MemorySettings, ScoringSettings, Settings
from schemas.topics import Topics, key_of, partition_of
from streams.app import Siltstone
from streams.doors.cli import running
from streams.kafka.clients.broker import EmbeddedBroker, client_options, ensure_topics
from streams.kafka.clients.log_reader import records_between
from streams.memory.agent import decode
from streams.replay import intake
from streams.replay import replay as replays
from streams.replay.plan import EARLIEST, NOW, ReplayOptions, planned
from tables.database.inspection import catalogs
from tables.memories.shard import Shard
from tables.offline.diff import differences
from tests.support import sparse
from tests.support.making import START, line
from tests.support.openai_server import Answer, OpenAIServer
from tests.support.quick_commands import siltstone
from tests.support.waiting import until, until_it_is
from tests.tables.memories.test_shard import HELD
from tests.worker.test_pipeline import Records, feed, samples
from tests.worker.test_reembed import interrupted

#: As `HELD`, without what says when something was published, and without archived vectors.
ROWS = {
    **HELD,
    "archive": "SELECT * EXCLUDE (vector), len(vector) FROM archive",
    "transitions": "SELECT memory_id, user_id, from_state, to_state, score, occurred_at, reason FROM transitions",
}
FORGETFUL = "forgetful"


def settings_of(broker: EmbeddedBroker, data: Path) -> Settings:
    base, name = Settings.load(), uuid.uuid4().hex[:8]
    kafka = broker.settings(base.kafka).model_copy(update={"topic_prefix": f"{name}.", "group_id": name})
    return base.model_copy(
        update={
            "data_dir": data,
            "kafka": kafka,
            "http": base.http.model_copy(update={"port": 0}),
            "lifecycle": LifecycleSettings(clock="event"),
        }
    )


@pytest.fixture(scope="module")
def lived(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Topics and data of a worker that has ended: samples, and every kind of command on what came of them."""
    settings = settings_of(broker, tmp_path_factory.mktemp("lived"))
    asyncio.run(_live(settings))
    return settings


async def _live(settings: Settings) -> None:
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        await feed(worker, samples())
        theirs: Records = [(key_of(FORGETFUL), said) for said in said_by(FORGETFUL, 8)]
        await feed(worker, theirs)
        ids = await memory_ids(worker, "maya")
        both = {"user_id": "maya", "timestamp": worker.clock.now() + 1000}
        events: list[LongTermEvent] = [
            Touch(event_id=uuid.uuid4(), memory_ids=ids[:4], **both),
            Touch(event_id=uuid.uuid4(), memory_ids=ids[:1], **both),
            Pin(event_id=uuid.uuid4(), memory_id=ids[1], **both),
            Edit(event_id=uuid.uuid4(), memory_id=ids[2], text="Maya plays the cello now", **both),
            Link(event_id=uuid.uuid4(), source_id=ids[0], target_id=ids[1], **both),
            Archive(event_id=uuid.uuid4(), memory_id=ids[3], **both),
            Archive(event_id=uuid.uuid4(), memory_id=ids[4], **both),
            Restore(event_id=uuid.uuid4(), memory_id=ids[4], **both),
            Forget(event_id=uuid.uuid4(), memory_id=ids[5], **both),
            ForgetUser(event_id=uuid.uuid4(), user_id=FORGETFUL, timestamp=both["timestamp"]),
        ]
        await tell(settings, events)
        await until_in(worker, events)
        beside = await replayed(settings)  # a worker and a replay do not disturb each other
        assert (beside["found"], beside["forgotten"]) == (0, 0)
        assert "has it open: stop it first" in await refused(settings, "--check")
        assert not worker.health.not_ready()


async def until_in(worker: Siltstone, events: Sequence[LongTermEvent]) -> None:
    for event in events:
        partition = worker.context.partition_of(event.user_id)
        await until_it_is(partial(is_in, worker, partition, event), alive=worker)


async def is_in(worker: Siltstone, partition: int, event: LongTermEvent) -> bool:
    return not await worker.shards.call(partition, Shard.unapplied, [event])


async def memory_ids(worker: Siltstone, user: str) -> list[uuid.UUID]:
    memories = await worker.shards.call(worker.context.partition_of(user), Shard.memories_of, user)
    return [memory.id for memory in memories]


def said_by(user: str, messages: int) -> list[bytes]:
    """Exchanges that are kept because the user asks for it, and the session's end."""
    said = [
        line(
            i, user, ("user", "assistant")[i % 2], i, content=f"please remember that number {i} of {user} is {i * 7}"
        )
        for i in range(messages)
    ]
    return [*said, line(messages, user, "user", messages, type="session_end")]


async def tell(settings: Settings, events: Sequence[LongTermEvent]) -> None:
    await produce(settings, Topics.with_prefix(settings.kafka.topic_prefix).long_term,
                  [(event.user_id, event.model_dump_json().encode(), None) for event in events])  # fmt: skip


async def say(settings: Settings, said: Sequence[tuple[str, bytes, int | None]]) -> None:
    await ensure_topics(settings.kafka)
    await produce(settings, Topics.with_prefix(settings.kafka.topic_prefix).conversations, said)


async def produce(settings: Settings, topic: str, records: Sequence[tuple[str, bytes, int | None]]) -> None:
    async with aiokafka.AIOKafkaProducer(**client_options(settings.kafka)) as producer:
        for user, value, at in records:
            await producer.send(topic, value, key=key_of(user), timestamp_ms=at)


async def log(settings: Settings) -> list[Promotion]:
    """The promotions in the log, as agents read them, partition by partition."""
    topic, found = Topics.with_prefix(settings.kafka.topic_prefix).long_term, []
    asked = ReplayOptions(EARLIEST, NOW, (), False, settings.kafka.topic_prefix, settings.kafka.partitions)
    with tempfile.TemporaryDirectory() as folder:
        plan = await planned(asked, Path(folder), settings.kafka, 0)
    for partition in range(settings.kafka.partitions):
        end = plan.long_term[partition].end
        if end:
            async for records in records_between(settings.kafka, topic, partition, 0, end):
                found += [event for event in map(decode, records) if isinstance(event, Promotion)]
    return found


def environment(settings: Settings) -> dict[str, str]:
    return {
        "SILTSTONE_DATA_DIR": str(settings.data_dir),
        "SILTSTONE_KAFKA__BOOTSTRAP_SERVERS": settings.kafka.bootstrap_servers,
        "SILTSTONE_KAFKA__TOPIC_PREFIX": settings.kafka.topic_prefix,
        "SILTSTONE_KAFKA__PARTITIONS": str(settings.kafka.partitions),
        "SILTSTONE_MEMORY__SCORING__POLICY": settings.memory.scoring.policy,
        "SILTSTONE_MEMORY__PIN_REQUESTS": str(settings.memory.pin_requests),
    }


async def replayed(settings: Settings, *words: str, code: int = 0) -> dict[str, Any]:
    result = await siltstone("replay", "--json", *words, **environment(settings))
    assert (result.returncode, result.stderr) == (code, ""), result.stderr
    figures: dict[str, Any] = orjson.loads(result.stdout)
    return figures


async def refused(settings: Settings, *words: str, code: int = 1) -> str:
    result = await siltstone("replay", *words, **environment(settings))
    assert result.returncode == code, result.stdout + result.stderr
    if code == 1:
        assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    return result.stderr


def rows(data: Path) -> dict[int, dict[str, list[str]]]:
    """All that the shards hold, by partition and table."""
    return rows_in(data / "shards")


def rows_in(shards: Path) -> dict[int, dict[str, list[str]]]:
    held = {}
    for partition in sorted(int(path.name) for path in shards.iterdir() if path.is_dir()):
        path = shards / str(partition) / "catalog.duckdb"
        with duckdb.connect(str(path), read_only=True) as db:
            held[partition] = {name: sorted(map(repr, db.execute(sql).fetchall())) for name, sql in ROWS.items()}
    return held


def close_to(one: dict[int, dict[str, list[str]]], other: dict[int, dict[str, list[str]]]) -> None:
    """Equal rows; of the vectors, whose last digits depend on the batch, the number."""
    assert one.keys() == other.keys()
    for partition, tables in one.items():
        for name, held in tables.items():
            if name == "vectors":
                assert len(held) == len(other[partition][name])
            else:
                assert held == other[partition][name], (partition, name)


@pytest.mark.parametrize("source", ["long-term", pytest.param("conversations", marks=pytest.mark.slow)])
async def test_a_rebuild_holds_what_the_worker_held(lived: Settings, tmp_path: Path, source: str) -> None:
    """With its access counts, pins, edits, archive and tombstones."""
    figures = await replayed(lived, "--into", str(tmp_path / "a"), "--source", source)
    close_to(rows(tmp_path / "a"), rows(lived.data_dir))
    for partition, path in catalogs(tmp_path / "a").items():
        assert differences(partition, catalogs(lived.data_dir)[partition], path) == []
    counted = {name: figures[name] for name in ("found", "unusable", "misrouted")}
    assert counted == {"found": 0, "unusable": 0, "misrouted": 0}
    if source == "conversations":
        assert figures["promoted"] == figures["in_log"] > 30
        assert figures["messages"] == len([said for _, said in samples() if said and b"session_end" not in said]) + 8


@pytest.mark.slow
@pytest.mark.parametrize("source", ["long-term", "conversations"])
async def test_once_more_into_the_same_folder_changes_nothing(lived: Settings, tmp_path: Path, source: str) -> None:
    into = ("--into", str(tmp_path / "a"), "--source", source)
    figures = await replayed(lived, *into)
    held = rows(tmp_path / "a")
    again = await replayed(lived, *into)
    assert (again["memories"], again["effects"], rows(tmp_path / "a")) == (figures["memories"], {}, held)


@pytest.mark.slow
async def test_another_topic_with_the_same_messages_gives_the_same_ids(
    lived: Settings, broker: EmbeddedBroker, tmp_path: Path
) -> None:
    """No worker has seen them: the replay sends what it promotes, once; and nothing of who is forgotten."""
    there = settings_of(broker, tmp_path / "data")
    await say(there, [(orjson.loads(said)["user_id"], said, None) for _, said in samples() if said])
    await say(there, [(FORGETFUL, said, None) for said in said_by(FORGETFUL, 8)])
    await tell(there, [ForgetUser(event_id=uuid.uuid4(), user_id=FORGETFUL, timestamp=START + 60_000)])
    first = await replayed(there)
    sent = {one.event_id: one.model_dump_json() for one in await log(there)}
    live = {one.event_id: one.model_dump_json() for one in await log(lived)}
    assert sent.items() == {event: text for event, text in live.items() if f'"{FORGETFUL}"' not in text}.items()
    assert (first["found"], first["forgotten"]) == (len(sent), 4)
    second = await replayed(there)
    assert (second["found"], second["in_log"]) == (0, len(sent))
    assert len(await log(there)) == len(sent)
    assert not list((there.data_dir / "replay").iterdir())


@pytest.mark.slow
async def test_what_the_log_has_lost_takes_its_place_among_the_commands(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    """A pin that came after the exchange holds, though only the conversations know the exchange."""
    settings = settings_of(broker, tmp_path / "data")
    await say(settings, [("u", said, None) for said in said_by("u", 4)])
    await replayed(settings)
    (first, second) = [one for one in await log(settings) if one.user_id == "u"]
    emptied = settings_of(broker, tmp_path / "other")
    memory = emptied.memory.model_copy(update={"pin_requests": False})  # else both would be born so
    emptied = emptied.model_copy(update={"memory": memory})
    await say(emptied, [("u", said, None) for said in said_by("u", 4)])
    await tell(
        emptied,
        [
            Pin(event_id=uuid.uuid4(), user_id="u", timestamp=first.timestamp, memory_id=first.memory_id),
            Pin(event_id=uuid.uuid4(), user_id="u", timestamp=first.timestamp, memory_id=second.memory_id),
        ],
    )
    figures = await replayed(emptied, "--into", str(tmp_path / "made"))
    with duckdb.connect(str(catalogs(tmp_path / "made")[partition_of("u", 4)]), read_only=True) as db:
        pinned = dict(db.execute("SELECT id, pinned FROM memories").fetchall())
    assert pinned == {first.memory_id: True, second.memory_id: False}
    assert (figures["found"], figures["effects"]) == (2, {"new": 2, "unknown": 1})


@pytest.mark.slow
async def test_only_these_users(lived: Settings, tmp_path: Path) -> None:
    """Their memories are those that the worker holds of them; nobody else's are there."""
    await replayed(lived, "--into", str(tmp_path / "a"), "--users", "maya, nobody")
    held = catalogs(tmp_path / "a")[partition_of("maya", lived.kafka.partitions)]
    with duckdb.connect(str(held), read_only=True) as db:
        assert db.execute("SELECT DISTINCT user_id FROM memories").fetchall() == [("maya",)]
    assert (await replayed(lived, "--users", "maya", "--check"))["differences"] == []
    assert "other options" in await refused(lived, "--into", str(tmp_path / "a"))


@pytest.mark.slow
async def test_a_check_names_the_rows_that_differ_and_a_swap_mends_them(lived: Settings, tmp_path: Path) -> None:
    settings = lived.model_copy(update={"data_dir": tmp_path / "data"})
    shutil.copytree(lived.data_dir, settings.data_dir, copy_function=sparse.copy)
    whole = rows(settings.data_dir)
    assert (await replayed(settings, "--check"))["differences"] == []
    partition = partition_of("maya", settings.kafka.partitions)
    with duckdb.connect(str(catalogs(settings.data_dir)[partition])) as db:
        (pinned,) = db.execute("SELECT min(id) FROM memories WHERE pinned").fetchall()[0]
        db.execute("UPDATE memories SET access_count = 77 WHERE id = ?", [pinned])
        db.execute("DELETE FROM links")
    tampered = rows(settings.data_dir)
    found = (await replayed(settings, "--check", code=1))["differences"]
    assert [(one["partition"], one["table"], one["only_live"], one["only_rebuilt"]) for one in found] == [
        (partition, "memories", 1, 1),
        (partition, "links", 0, 1),
    ]
    assert found[0]["ids"] == [str(pinned)]
    done = await replayed(settings, "--into", str(tmp_path / "made"), "--swap")
    close_to(rows(settings.data_dir), whole)
    close_to(rows_in(Path(done["former"])), tampered)
    assert catalogs(tmp_path / "made") == {}


class Interrupted(Exception):
    """What a kill looks like from within: nothing is kept that was not kept before."""


@pytest.mark.slow
async def test_an_interrupted_replay_comes_to_the_same(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records come one by one, the windows are saved at random, and it is broken off again and again."""
    settings = settings_of(broker, tmp_path / "data").model_copy(
        update={"memory": MemorySettings(scoring=ScoringSettings(policy="all"), promote_threshold=2)}
    )
    said = [(user, one, None) for user in ("u", "v", "w") for one in said_by(user, 12)]
    await say(settings, said)
    touches = [
        Touch(
            event_id=uuid.uuid4(),
            user_id="u",
            timestamp=START + i * 1000,
            memory_ids=[memory_id("u", "u-s", (f"u-{i // 4 * 2}", f"u-{i // 4 * 2 + 1}"))],
        )
        for i in range(12)
    ]
    await tell(settings, [*touches, ForgetUser(event_id=uuid.uuid4(), user_id="w", timestamp=START + 5_000)])
    chance, breaking = random.Random(7), [True]
    broken = 0

    async def one_by_one(*arguments: Any) -> AsyncGenerator[Sequence[Any], None]:
        async with aclosing(records_between(*arguments)) as batches:
            async for batch in batches:
                for record in batch:
                    if breaking[0] and chance.random() < 0.1:
                        raise Interrupted
                    monkeypatch.setattr(intake, "SAVE_SECONDS", chance.choice([0.0, 1000.0]))
                    yield [record]

    asked = ReplayOptions(EARLIEST, NOW, (), True, settings.kafka.topic_prefix, settings.kafka.partitions)

    async def attempt(folder: Path) -> dict[str, int]:
        plan = await planned(asked, folder, settings.kafka, 1_800_000)
        async with replays.replaying(settings, plan, folder, rebuild=True) as replay:
            await replay.run(lambda name: lambda done, total, note="": None)
            return replay.figures()

    whole = await attempt(tmp_path / "whole")
    monkeypatch.setattr(replays, "records_between", one_by_one)
    monkeypatch.setattr(replays, "SIDE_BY_SIDE", 1)  # aiokafka leaves a socket open where connecting is cancelled
    while True:
        try:
            figures = await attempt(tmp_path / "broken")
            break
        except Interrupted:
            broken += 1
            breaking[0] = broken < 12
    assert broken > 3
    assert figures == whole
    assert figures["found"] > 12
    close_to(rows(tmp_path / "broken"), rows(tmp_path / "whole"))


@pytest.mark.slow
async def test_a_time_within_a_session_cuts_no_exchange(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """By the records' times; what was said before is read for the windows alone. What is open at the end stays so."""
    settings = settings_of(broker, tmp_path / "data")
    await say(settings, [("u", said, START + i * 1000) for i, said in enumerate(said_by("u", 12))])
    await replayed(settings, "--from", str(START + 5_000), "--to", "2026-01-01T00:00:09Z")
    sent = [one.message_ids for one in await log(settings)]
    assert sent == [["u-4", "u-5"], ["u-6", "u-7"]]
    await replayed(settings)
    assert sorted(one.message_ids[0] for one in await log(settings)) == ["u-0", "u-10", "u-2", "u-4", "u-6", "u-8"]


@pytest.mark.slow
async def test_what_is_wrong_is_one_clear_line(lived: Settings, broker: EmbeddedBroker, tmp_path: Path) -> None:
    assert "is not a time" in await refused(lived, "--from", "yesterday", code=2)
    assert "before --to" in await refused(lived, "--from", "2026-01-02", "--to", "2026-01-01", code=2)
    assert "the whole log" in await refused(lived, "--into", str(tmp_path / "a"), "--swap", "--users", "u", code=2)
    nowhere = ("--bootstrap-servers", "127.0.0.1:1")
    assert "no Kafka broker answers at 127.0.0.1:1" in await refused(lived, "--into", str(tmp_path / "b"), *nowhere)
    empty = settings_of(broker, tmp_path / "data")
    await ensure_topics(empty.kafka)
    assert "nothing to replay" in await refused(empty)
    assert "there are no shards" in await refused(empty, "--check")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    assert "holds no replay" in await refused(lived, "--into", str(tmp_path / "full"))


@pytest.mark.slow
async def test_a_model_is_asked_once_and_ctrl_c_loses_nothing(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted while it waits for the model; the next run goes on, and a later replay asks for nothing again."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    settings = settings_of(broker, tmp_path / "first")
    said = [line(i, "u", ("user", "assistant")[i % 2], i, content=f"I like tea number {i}") for i in range(6)]
    await say(settings, [("u", one, None) for one in [*said, line(6, "u", "user", 6, type="session_end")]])
    async with OpenAIServer(lambda asked: Answer("8" if "number 2" in asked.said_by("user") else "0")) as server:
        rated = {
            **environment(settings),
            "SILTSTONE_LLM__API_KEY": "sk-test",
            "SILTSTONE_LLM__BASE_URL": server.base_url,
        }
        server.gate.clear()
        command = ("replay", "--into", str(tmp_path / "first"), "--json")
        async with interrupted(*command, **rated) as interrupt:
            await until(lambda: server.under_way == 3)
            code, errors = await interrupt()
        assert (code, errors.splitlines()[-1][:19]) == (1, "siltstone: stopped;")
        assert len(errors.splitlines()) == 1, errors
        server.gate.set()
        result = await siltstone(*command, **rated)
        assert result.returncode == 0, result.stderr
        assert (orjson.loads(result.stdout)["memories"], orjson.loads(result.stdout)["promoted"]) == (1, 1)
        asked = len(server.received)
        result = await siltstone("replay", "--into", str(tmp_path / "second"), "--json", **rated)
        assert (result.returncode, orjson.loads(result.stdout)["memories"]) == (0, 1), result.stderr
        assert len(server.received) == asked
    close_to(rows(tmp_path / "second"), rows(tmp_path / "first"))
