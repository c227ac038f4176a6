"""A user's profile in a model's words: what the API shows of each answer, and what of it is kept for how long."""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from schemas.events import Edit, Forget, ForgetUser, LongTermEvent, Remember
from streams.recall import reworded_profiles
from streams.recall.reworded_profiles import RewordedProfiles
from tests.support.making import START
from tests.support.openai_server import Answer, OpenAIServer
from tests.support.talk import Talk, talk
from tests.support.waiting import until

DAY = 86_400_000
HOME, JOB, SISTER, EXAM, DENTIST = (uuid.UUID(int=number) for number in range(1, 6))


def remembered(identity: uuid.UUID, text: str, at: int = START, user: str = "u") -> Remember:
    return Remember(event_id=uuid.uuid4(), user_id=user, timestamp=at, text=text, memory_id=identity, importance=80)


KNOWN = (
    remembered(HOME, "I live in Bergen."),
    remembered(JOB, "I work as a nurse.", START + DAY),
    remembered(SISTER, "My sister is called Ann.", START + 2 * DAY),
)
ABOUT = [{"lines": [1, 2], "text": "lives in Bergen, works as a nurse"}]
PEOPLE = [{"lines": [3], "text": "has a sister, Ann"}]
RIGHT = json.dumps({"about": ABOUT, "people": PEOPLE})


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer(lambda _: Answer(RIGHT)) as running:
        yield running


@pytest.fixture
async def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: OpenAIServer) -> AsyncIterator[Talk]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    llm = {"api_key": "sk-test", "base_url": server.base_url}
    async with talk(tmp_path, monkeypatch, llm=llm, recall={"profile_by_model": True}) as made:
        await made.applied(*KNOWN)
        yield made
        await rewording(made).stop()
        await made.worker._chats.close()


def rewording(here: Talk) -> RewordedProfiles:
    made = here.worker._rewording
    assert made is not None
    return made


async def profile(http: httpx.AsyncClient, **asked: Any) -> dict[str, Any]:
    answer = await http.get("/v1/profile", params={"user_id": "u", **asked})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def shown(found: dict[str, Any]) -> dict[str, tuple[list[str], bool]]:
    return {one["part"]: ([line["text"] for line in one["lines"]], one["reworded"]) for one in found["sections"]}


OWN = {
    "about": (["I work as a nurse.", "I live in Bergen."], False),
    "people": (["My sister is called Ann."], False),
}


def counted(here: Talk) -> dict[str, float]:
    (metric,) = here.worker.metrics.profile_sections.collect()
    return {one.labels["outcome"]: one.value for one in metric.samples if one.name.endswith("_total")}


async def test_the_same_facts_in_other_words_keep_ids_and_the_newest_time(here: Talk, server: OpenAIServer) -> None:
    async with here.http() as http:
        found = await profile(http)
    about, people = found["sections"]
    assert about == {
        "part": "about",
        "lines": [
            {
                "text": "Lives in Bergen, works as a nurse",
                "memory_ids": [str(JOB), str(HOME)],
                "said_at": "2026-01-02T00:00:00.000Z",
                "due": None,
            }
        ],
        "reworded": True,
    }
    assert (people["lines"][0]["text"], people["reworded"]) == ("Has a sister, Ann", True)
    assert found["text"] == (
        "About the user:\n- [2026-01-02] Lives in Bergen, works as a nurse\n"
        "People and pets:\n- [2026-01-03] Has a sister, Ann"
    )
    assert 0 < found["tokens"] <= 300
    assert counted(here) == {"reworded": 2, "refused": 0}
    assert len(server.received) == 1


@pytest.mark.parametrize(
    ("about", "reason"),
    [
        ([{"lines": [1], "text": "works as a nurse"}], "not each line"),
        ([*ABOUT, {"lines": [3], "text": "has a sister, Ann"}], "not each line"),
        ([*ABOUT, {"lines": [9], "text": "lives in Bergen"}], "not each line"),
        ([*ABOUT, {"lines": [2], "text": "lives in Bergen"}], "not each line"),
        ([*ABOUT, {"lines": [], "text": "is kind"}], "stands for no line"),
        ([{"lines": [1, 2], "text": "lives in Bergen, works as a nurse since 2019"}], "a number that they do not"),
        ([{"lines": [1, 2], "text": "lives in Bergen, works as a nurse for Bob"}], "a name or word"),
        ([{"lines": [1, 2], "text": "works as a nurse"}], "no name that they have"),
        ([{"lines": [1, 2], "text": "lives in Bergen, never works as a nurse"}], "another negation"),
        ([{"lines": [1, 2], "text": "lives in Bergen, works as a nurse tomorrow"}], "another time"),
        ([{"lines": [1, 2], "text": "lives in Bergen, the password is nurse"}], "a secret"),
        ([{"lines": [1, 2], "text": "lives in Bergen, works as a nurse, " + "and so on " * 9}], "longer"),
        ([{"lines": [1, 2], "text": " \u202e\n "}], "empty"),
        ([{"lines": [1, 2], "text": "lives in Bergen"}], "too few of the words"),
        ("lives in Bergen", "it has no list"),
        (None, "it has no list"),
    ],
)
async def test_a_section_that_fails_the_check_keeps_the_users_words(
    here: Talk, server: OpenAIServer, caplog: pytest.LogCaptureFixture, about: Any, reason: str
) -> None:
    server.script(json.dumps({"about": about, "people": PEOPLE}))
    with caplog.at_level(logging.WARNING):
        async with here.http() as http:
            found = shown(await profile(http))
            assert found == {"about": OWN["about"], "people": (["Has a sister, Ann"], True)}
            assert shown(await profile(http)) == found
    assert counted(here) == {"reworded": 1, "refused": 1}
    assert len(server.received) == 1, "a refused answer is not asked for again"
    (said,) = [one for one in caplog.messages if "keeps the user's words" in one]
    assert said.startswith("the section about of a profile keeps the user's words: ")
    assert reason in said
    assert not any(word in said for word in ("Bergen", "nurse", "Ann", "Bob"))


async def test_an_answer_is_one_line_without_marks_and_invisible_characters(here: Talk, server: OpenAIServer) -> None:
    text = "lives in \u202eBergen,\n works <as> a nurse\ud800"
    server.script(json.dumps({"about": [{"lines": [2, 1], "text": text}], "people": PEOPLE}))
    async with here.http() as http:
        assert shown(await profile(http))["about"] == (["Lives in Bergen, works ‹as› a nurse"], True)


async def test_a_malformed_answer_changes_nothing_and_is_not_asked_for_again(
    here: Talk, server: OpenAIServer
) -> None:
    server.script("I would rather not.")
    async with here.http() as http:
        for _ in range(2):
            assert shown(await profile(http)) == OWN
    assert (len(server.received), counted(here)["refused"]) == (1, 2)


@pytest.mark.parametrize("answer", [Answer(status=500), Answer(fault="broken"), Answer(status=401)])
async def test_without_an_answer_the_users_words_are_shown_and_nothing_is_asked_for_a_while(
    here: Talk, server: OpenAIServer, answer: Answer
) -> None:
    now = 0.0
    rewording(here)._monotonic = lambda: now
    rewording(here)._resume_at = now
    server.script(answer)
    async with here.http() as http:
        for _ in range(2):
            assert shown(await profile(http)) == OWN
        assert (len(server.received), counted(here)) == (1, {"failed": 2})
        now = reworded_profiles.PAUSE_SECONDS
        assert shown(await profile(http))["people"] == (["Has a sister, Ann"], True)


async def test_a_model_that_does_not_answer_in_its_time_gives_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: OpenAIServer
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    scoring = {"api_key": "sk-test", "base_url": server.base_url, "timeout_seconds": 0.05}
    server.script(Answer(fault="endless"))
    async with talk(tmp_path, monkeypatch, memory={"scoring": scoring}, recall={"profile_by_model": True}) as made:
        await made.applied(*KNOWN)
        async with made.http() as http:
            assert shown(await profile(http)) == OWN
        assert counted(made) == {"failed": 2}
        await made.worker._chats.close()


async def test_a_fault_of_the_check_fails_no_request(
    here: Talk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("Bergen")

    monkeypatch.setattr(reworded_profiles, "_checked", broken)
    async with here.http() as http:
        assert shown(await profile(http)) == OWN
    assert "a profile keeps the user's words: ZeroDivisionError" in caplog.messages
    assert "Bergen" not in caplog.text


async def test_a_slow_answer_is_for_the_next_profile(
    here: Talk, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Questions about the same profile are one."""
    monkeypatch.setattr(reworded_profiles, "WAIT_SECONDS", 0.0)
    server.gate.clear()
    async with here.http() as http:
        assert [shown(one) for one in await asyncio.gather(profile(http), profile(http))] == [OWN, OWN]
        server.gate.set()
        await until(lambda: rewording(here)._kept)
        assert shown(await profile(http))["about"] == (["Lives in Bergen, works as a nurse"], True)
    assert len(server.received) == 1


async def test_a_context_has_the_models_words_only_if_they_are_ready(here: Talk, server: OpenAIServer) -> None:
    """A memory whose words are not in the prompt may be told beside the profile."""
    asked: dict[str, str | bool] = {"user_id": "u", "session_id": "s", "q": "Bergen", "profile": True}
    async with here.http() as http:
        first = (await http.get("/v1/context", params=asked)).json()
        assert shown(first["profile"]) == OWN
        assert server.received == []
        assert first["prompt"].count("I live in Bergen.") == 1
        await profile(http)
        later = (await http.get("/v1/context", params=asked)).json()
        assert shown(later["profile"])["about"] == (["Lives in Bergen, works as a nurse"], True)
        assert later["profile"]["text"] in later["prompt"]
        assert later["prompt"].count("I live in Bergen.") == 1, "it is found by the question"
        assert len(server.received) == 1


async def test_tasks_are_not_merged_and_keep_their_ends(here: Talk, server: OpenAIServer) -> None:
    exam = remembered(EXAM, "My exam is on 9 January 2026 at 23:00.", START + 3 * DAY)
    dentist = remembered(DENTIST, "I have an appointment with Dr. Lee on 8 January 2026 at 10:00.", START + 3 * DAY)
    await here.applied(exam, dentist)
    tasks = [
        {"lines": [5], "text": "exam on 9 January 2026 at 23:00"},
        {"lines": [4], "text": "appointment with Dr. Lee on 8 January 2026 at 10:00"},
    ]
    merged = [{"lines": [4, 5], "text": "Dr. Lee on 8 January 2026 at 10:00, exam on 9 January 2026 at 23:00"}]
    server.script(*(json.dumps({"about": ABOUT, "people": PEOPLE, "tasks": one}) for one in (merged, tasks)))
    async with here.http() as http:
        own = await profile(http)
        assert shown(own)["tasks"] == ([dentist.text, exam.text], False)
        assert shown(own)["about"][1], "the other sections are not concerned"
        rewording(here).clear()
        found = (await profile(http))["sections"][-1]
    assert [line["text"] for line in found["lines"]] == [
        "Appointment with Dr. Lee on 8 January 2026 at 10:00",
        "Exam on 9 January 2026 at 23:00",
    ]
    before = own["sections"][-1]["lines"]
    assert [(one["due"], one["memory_ids"]) for one in found["lines"]] == [
        (one["due"], one["memory_ids"]) for one in before
    ]
    assert all(one["due"] for one in before)


def forget(identity: uuid.UUID) -> Forget:
    return Forget(event_id=uuid.uuid4(), user_id="u", timestamp=START + 5 * DAY, memory_id=identity)


@pytest.mark.parametrize(
    "event",
    [forget(JOB), ForgetUser(event_id=uuid.uuid4(), user_id="u", timestamp=START + 5 * DAY)],
    ids=["memory", "user"],
)
async def test_what_is_forgotten_is_gone_from_the_answer_and_from_the_workers_memory(
    here: Talk, server: OpenAIServer, event: LongTermEvent
) -> None:
    async with here.http() as http:
        await profile(http)
        assert "nurse" in repr(rewording(here)._kept)
        await here.applied(event)
        assert rewording(here)._kept == {}
        timers = cast(Any, asyncio.get_running_loop())._scheduled
        assert "nurse" not in repr([one._args for one in timers])
        server.script(json.dumps({"about": [{"lines": [1], "text": "lives in Bergen"}], "people": []}))
        assert "nurse" not in json.dumps(await profile(http))


async def test_an_answer_that_comes_after_the_forgetting_is_not_kept(
    here: Talk, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reworded_profiles, "WAIT_SECONDS", 0.0)
    server.gate.clear()
    async with here.http() as http:
        await profile(http)
        (asked,) = rewording(here)._asked.values()
        await until(lambda: server.received)
        await here.applied(forget(JOB))
        server.gate.set()
        await asyncio.wait([asked.task])
        assert asked.task.cancelled()
        assert (rewording(here)._kept, rewording(here)._asked) == ({}, {})


async def test_memories_that_were_read_before_a_forgetting_are_not_asked_about(
    here: Talk, server: OpenAIServer
) -> None:
    service = here.worker.service
    moment, reference = rewording(here).moment(), service.reference()
    read, _ = await service._profile("u", reference, False, 300)
    await here.applied(forget(JOB))
    assert await rewording(here).reworded("u", read, reference, moment) is read
    assert server.received == []


async def test_another_fact_is_another_question_and_another_day_is_none(here: Talk, server: OpenAIServer) -> None:
    async with here.http() as http:
        await profile(http)
        await profile(http, reference_date="2026-01-04", timezone="Asia/Tokyo")
        assert len(server.received) == 1
        await here.applied(
            Edit(
                event_id=uuid.uuid4(), user_id="u", timestamp=START + 4 * DAY, memory_id=HOME, text="I live in Rome."
            )
        )
        found = shown(await profile(http))
        assert found["about"] == (["I live in Rome.", "I work as a nurse."], False), "the model still says Bergen"
        assert len(server.received) == 2


async def test_the_words_are_dropped_after_a_while(here: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reworded_profiles, "KEPT_SECONDS", 0.0)
    async with here.http() as http:
        await profile(http)
        await until(lambda: not rewording(here)._kept)
        assert counted(here)["reworded"] == 2


async def test_the_words_are_dropped_when_partitions_are_assigned(
    here: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is forgotten of a user of another worker is not told here."""
    monkeypatch.setattr(here.worker.hot, "connect", lambda: None)  # there is no broker
    async with here.http() as http:
        await profile(http)
        assert rewording(here)._kept
        await here.worker._assignment._assigned(None, frozenset(), signal=None)
        assert rewording(here)._kept == {}


async def test_only_so_many_users_have_words_that_are_kept_the_last_ones(
    here: Talk, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reworded_profiles, "MOST_USERS", 1)
    await here.applied(remembered(EXAM, "I live in Bergen.", user="v"))
    async with here.http() as http:
        await profile(http)
        await profile(http, user_id="v")
        assert list(rewording(here)._kept) == ["v"]
        monkeypatch.setattr(reworded_profiles, "MOST_ASKED", 0)
        assert shown(await profile(http)) == OWN
        assert len(server.received) == 2


async def test_a_user_without_a_profile_is_not_asked_about(here: Talk, server: OpenAIServer) -> None:
    async with here.http() as http:
        found = await profile(http, user_id="nobody")
    assert (found["sections"], server.received) == ([], [])


async def test_the_dashboard_shows_the_models_words_and_says_so(here: Talk, server: OpenAIServer) -> None:
    async with here.http() as http:
        page = await http.get("/ui/me", params={"user_id": "u"})
        assert "Lives in Bergen, works as a nurse" in page.text
        assert "Some of it is in a model’s words." in page.text
        server.script('{"about": []}')
        rewording(here).clear()
        page = await http.get("/ui/me", params={"user_id": "u"})
        assert "I live in Bergen." in page.text
        assert "model’s words" not in page.text


async def test_nothing_is_asked_where_it_is_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: OpenAIServer
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    async with talk(tmp_path, monkeypatch, llm={"api_key": "sk", "base_url": server.base_url}) as made:
        await made.applied(*KNOWN)
        async with made.http() as http:
            assert shown(await profile(http)) == OWN
    assert server.received == []
