"""Benchmarks on a Kafka that others use, too: what is theirs stays, and what is wrong is said in a line."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click
import httpx
import orjson
import pytest
from aiokafka.errors import TopicAuthorizationFailedError
from click.testing import CliRunner

from benchmarks import intake, retrieval, scale, summaries, sustained, user_profile
from benchmarks.load.topics import deleted_afterwards, of_its_own
from benchmarks.state import changes, filling, legs, silence
from benchmarks.sustained import in_a_line
from schemas.settings import KafkaSettings, Settings
from schemas.topics import partition_of
from streams.kafka.clients.broker import admin_client, ensure_topics

pytestmark = pytest.mark.usefixtures("_like_a_command")


async def topics(kafka: KafkaSettings) -> set[str]:
    async with admin_client(kafka) as admin:
        return set(await admin.list_topics())


def test_each_run_has_a_prefix_and_a_group_that_nobody_else_has() -> None:
    first, second = (of_its_own("intake", "127.0.0.1:9092", 4, 3) for _ in range(2))
    assert first.topic_prefix == f"{first.group_id}."
    assert (first.group_id != second.group_id, first.partitions, first.replication) == (True, 4, 3)


async def test_a_runs_topics_are_deleted_whatever_comes_of_it_and_no_others(settings: Settings) -> None:
    theirs = settings.kafka
    await ensure_topics(theirs)
    before = await topics(theirs)
    ours = of_its_own("intake", theirs.bootstrap_servers, 2)

    async def run() -> None:
        async with deleted_afterwards(ours):
            await ensure_topics(ours)
            made = await topics(theirs) - before
            assert {name for name in made if name.startswith(ours.topic_prefix)} == made != set()
            raise ValueError("it failed")

    with pytest.raises(ValueError, match="it failed"):
        await run()
    assert await topics(theirs) == before


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", [intake, sustained], ids=["intake", "sustained"])
def test_a_broker_that_does_not_answer_is_one_line(benchmark: Any) -> None:
    done = CliRunner().invoke(benchmark.main, ["--bootstrap-servers", "127.0.0.1:1"])
    assert done.exit_code == 1
    told = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert told == done.stderr.splitlines()[-1:]
    assert "no Kafka broker answers at 127.0.0.1:1" in told[0]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TopicAuthorizationFailedError("t"), "the broker refuses the records: TopicAuthorizationFailed"),
        (httpx.ConnectError("gone"), "the worker does not answer: its last words"),
    ],
    ids=["broker", "worker"],
)
async def test_what_is_refused_beside_other_work_is_one_line(error: Exception, said: str) -> None:
    """A group of tasks raises a group of errors, which is a page where it leaves a benchmark."""

    async def refused() -> None:
        raise error

    async def at_work() -> None:
        with in_a_line(lambda: "its last words"):
            async with asyncio.TaskGroup() as beside:
                beside.create_task(refused())

    with pytest.raises(click.ClickException, match=said):
        await at_work()


async def test_what_is_wrong_with_the_benchmark_itself_is_not_hidden() -> None:
    with pytest.raises(ExceptionGroup, match="tasks"), in_a_line(lambda: ""):
        raise ExceptionGroup("tasks", [ValueError("a mistake")])


def test_retrieval_is_measured_under_the_shipped_policy_unless_told_otherwise() -> None:
    (option,) = [each for each in retrieval.main.params if each.name == "policy"]
    assert option.default == Settings().memory.scoring.policy == "weighted"
    assert isinstance(option.type, click.Choice)
    assert set(option.type.choices) == {"weighted", "llm", "all"}


def said_on(day: str, messages: int) -> list[bytes]:
    """A day of one user's, as the development sets have it."""
    return [
        orjson.dumps(
            {
                "user_id": "ann",
                "session_id": day,
                "message_id": f"{day}-{number}",
                "role": ("user", "assistant")[number % 2],
                "content": ("We met at the harbour gate.", "Nice.")[number % 2],
                "timestamp": f"{day}T10:00:{number:02}Z",
            }
        )
        for number in range(messages)
    ]


def test_days_of_summaries_are_drawn_the_same_each_time_and_no_day_is_in_two_sets(tmp_path: Path) -> None:
    """A day of fewer than eight messages is none."""
    lines = [line for day in range(1, 29) for line in said_on(f"2026-02-{day:02}", 8 if day % 2 else 7)]
    (tmp_path / "chats.jsonl").write_bytes(b"\n".join(lines))
    days = summaries.days_of("chats", tmp_path / "chats.jsonl")
    assert [day.number for day in days] == list(range(1, 15))
    sets = summaries.drawn(days, 5)
    assert sets == summaries.drawn(days, 5)
    assert {name: len(found) for name, found in sets.items()} == {"tuning": 5, "judged": 5}
    assert {day.name for day in sets["tuning"]}.isdisjoint(day.name for day in sets["judged"])


def test_a_days_summary_is_printed_line_by_line(tmp_path: Path) -> None:
    lines = [line for day in range(1, 9) for line in said_on(f"2026-02-{day:02}", 8)]
    (tmp_path / "memorybank_en.messages.dev.jsonl").write_bytes(b"\n".join(lines))
    done = CliRunner().invoke(summaries.main, [str(tmp_path), "--days", "fresh", "--json"], catch_exceptions=False)
    told = orjson.loads(done.stdout)
    assert len(told) == 4
    assert [day["lines"] for day in told.values()] == [["topic       harbour gate  [1, 2, 3, 4]"]] * 4


def test_data_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = CliRunner().invoke(summaries.main, [str(tmp_path)])
    assert done.exit_code == 1
    assert "does not exist: DATA is the folder of the development sets" in done.stderr


def test_memories_that_are_put_into_a_log_lie_where_their_users_do_and_come_in_turns() -> None:
    users = filling.users_of(3_000, 4)
    shares = filling.shares_of(3_000, users)
    assert (sum(shares), sum(map(len, users))) == (3_000, 30)
    for partition, (names, share) in enumerate(zip(users, shares, strict=True)):
        batches = list(filling.batches(share, names, 1_760_000_000_000))
        assert sum(map(len, batches)) == share
        assert {partition_of(event.user_id, 4) for batch in batches for event in batch} == {partition}
        assert len({event.memory_id for batch in batches for event in batch}) == share


def test_what_is_accessed_of_a_million_lies_apart_and_is_a_two_hundredth() -> None:
    users = [f"user-{number}" for number in range(200)]
    touches = changes._touches(users, 20_000, 1_760_000_000_000)
    assert sum(len(touch.memory_ids) for touch in touches) == pytest.approx(100, rel=0.1)
    assert {len(touch.memory_ids) for touch in touches} == {changes.ACCESSED_A_USER}


def test_a_silent_session_has_a_row_for_each_exchange_and_one_for_itself() -> None:
    sessions = silence.sessions_of(2_100)
    said = list(silence.messages_of(range(sessions), sessions, 4, 1_760_000_000_000))
    assert len(said) == sessions * silence.MESSAGES_A_SESSION
    assert sessions * silence.ROWS_A_SESSION == 2_100
    assert {record.partition for record in said} == set(range(4))


@pytest.mark.slow
def test_scale_measures_what_it_has_bars_for_with_a_few_memories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same program as with a million; what it measures then says nothing, so nobody waits until it rests."""
    monkeypatch.setattr(legs, "REST_SECONDS", 1.0)
    given = ["--memories", "2000", "--windows", "420", "--folder", str(tmp_path)]
    given += ["--legs", "memory,windows,restart,checkpoint,rebuild", "--json"]
    done = CliRunner().invoke(scale.main, given, catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    told = orjson.loads(done.stdout.splitlines()[-1])
    assert {bar.figure for bar in scale.BARS} - {"warm_takeover_s"} <= told.keys()
    assert told["window_messages"] == 800
    assert told["restored_memories"] == 2_000 + told["changed_new"]
    assert list(tmp_path.iterdir()) == []


def test_a_leg_that_is_not_there_is_one_line() -> None:
    done = CliRunner().invoke(scale.main, ["--legs", "memory,everything"])
    assert done.exit_code == 2
    assert "everything: choose from memory, windows, restart, checkpoint, rebuild, warm" in done.stderr


def test_profiles_are_timed_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_profile, "COUNTS", (3,))
    said = [
        ("user", "I live in Oslo."),
        ("assistant", "I live in a box."),
        ("user", "Hi!"),
        ("user", "My sister Anna lives with us."),
    ]
    file = tmp_path / "messages.jsonl"
    records = [
        {
            "user_id": "ann",
            "session_id": "s",
            "role": role,
            "content": content,
            "timestamp": f"2026-01-01T10:0{at}:00Z",
        }
        for at, (role, content) in enumerate(said)
    ]
    file.write_bytes(b"\n".join(map(orjson.dumps, records)))
    done = CliRunner().invoke(user_profile.main, [str(file), "--json"], catch_exceptions=False)
    assert orjson.loads(done.stdout.splitlines()[-1]).keys() == {"first_ms_3", "next_ms_3"}
    shown = CliRunner().invoke(user_profile.main, [str(file), "--user", "ann"], catch_exceptions=False).stdout
    assert shown.startswith("ann: 3 memories, ")
    assert "- [2026-01-01] I live in Oslo.\n" in shown
    assert "a box" not in shown
    assert CliRunner().invoke(user_profile.main, [str(file), "--user", "bob"]).exit_code == 1
