"""Daily summaries of a running worker: every trigger, HTTP and commands, on the real broker and disk."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import uuid
from collections.abc import AsyncIterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import orjson
import pytest
import pytest_asyncio
from click.testing import CliRunner, Result

from schemas import places
from schemas.events import SummaryRequest
from schemas.lifecycle import DAY_MS
from schemas.settings import SUMMARY_VARIABLES, AgentsSettings, LlmSettings, Settings
from schemas.topics import key_of
from streams.app import Siltstone
from streams.doors.cli import cli, running
from streams.kafka.clients.broker import EmbeddedBroker
from streams.telemetry.metrics import labelled
from tests.streams.summaries.test_summariser import GOOD
from tests.support.api import api
from tests.support.late_api import api_of
from tests.support.making import START, line, message
from tests.support.openai_server import Answer, OpenAIServer
from tests.support.quick_commands import siltstone
from tests.support.waiting import until, until_it_is
from tests.worker.test_pipeline import Records, feed
from tests.worker.test_replay import settings_of

#: The worker is shared by the tests, each of which has a user of its own.
pytestmark = pytest.mark.asyncio(loop_scope="module")

TODAY, TOMORROW = "2026-01-01", "2026-01-02"
DAY = DAY_MS // 1000
WORDS = ("I live in Oslo.", "I prefer short answers.", "We use DuckDB, because it is one file.", "Call the dentist.")


class Place(NamedTuple):
    """A worker, and its API."""

    worker: Siltstone
    http: httpx.AsyncClient

    @property
    def folder(self) -> Path:
        return self.worker.settings.data_dir / "memory"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.worker.api.port}"

    def outcomes(self) -> dict[str, int]:
        return {outcome: n for (outcome,), n in labelled(self.worker.metrics.summaries).items()}

    async def days(self, user: str, **span: str) -> dict[str, list[str]]:
        """Runs by day."""
        answer = (await self.http.get("/v1/summaries", params={"user_id": user, **span})).raise_for_status().json()
        return {day["date"]: day["runs"] for day in answer["days"]}

    async def waiting(self, user: str) -> list[str]:
        answer = (await self.http.get("/v1/summaries", params={"user_id": user})).raise_for_status().json()
        return [one["run_id"] for one in answer["waiting"]]

    async def until_none_waits(self, user: str) -> None:
        """Its file is there a moment before it is counted, and no longer waits."""

        async def none() -> bool:
            return await self.waiting(user) == []

        await until_it_is(none, alive=self.worker)

    async def file(self, user: str, day: str = TODAY) -> str:
        answer = (await self.http.get(f"/v1/summaries/{day}", params={"user_id": user})).raise_for_status().json()
        return str(answer["markdown"])

    async def until_runs(self, user: str, count: int, day: str = TODAY) -> list[str]:
        async def there() -> bool:
            return len((await self.days(user)).get(day, [])) == count

        await until_it_is(there, alive=self.worker)
        await self.until_none_waits(user)  # all of it is counted by then
        return (await self.days(user))[day]

    async def ask(self, user: str, **fields: Any) -> dict[str, Any]:
        """A request over HTTP; what it is answered with."""
        answer = await self.http.post("/v1/summaries", json={"user_id": user, **fields})
        assert answer.status_code == 202, answer.text
        asked: dict[str, Any] = answer.json()
        return asked

    async def tell(self, request: SummaryRequest) -> None:
        """A request into the log, and until it is dealt with: outcomes of earlier ones may be counted meanwhile."""
        topic, key = self.worker.topics.summary_requests, key_of(request.user_id)
        sent = await (await self.worker.hot.outbox.send(topic, request.model_dump_json().encode(), key=key))
        assert await self.worker.hot.until_readable(topic, sent.partition, sent.offset)

    async def say(self, user: str, *said: str, at: int = 0, first: int = 0, session: str = "") -> None:
        """The user says this, half a minute apart from `at` seconds after START, and is answered each time."""
        records: Records = []
        for place, content in enumerate(said):
            i, moment = first + 2 * place, at + 30 * place
            where = {"session_id": session or f"{user}-s"}
            records.append((user.encode(), line(i, user, "user", moment, content=content, **where)))
            records.append((user.encode(), line(i + 1, user, "assistant", moment + 5, content="Noted.", **where)))
        await feed(self.worker, records)

    async def talk(self, user: str, count: int, at: int = 0, first: int = 0) -> None:
        """The user says so much."""
        said = [f"{WORDS[i % len(WORDS)]} This is number {first // 2 + i}." for i in range(count)]
        await self.say(user, *said, at=at, first=first)

    async def command(self, *words: str) -> Result:
        """A command of `siltstone`, beside the worker."""
        return await asyncio.to_thread(CliRunner().invoke, cli, [*words, "--url", self.url])


async def started(settings: Settings) -> AsyncIterator[Place]:
    async with running.started(settings) as worker, api(worker) as http:
        await running.until_ready(worker)
        yield Place(worker, http)


@pytest.fixture(scope="module")
def shared_settings(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("summaries")
    agents = AgentsSettings.model_validate({"summary": {"fallback_dir": folder / "second"}})
    return settings_of(broker, folder / "data").model_copy(update={"agents": agents})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(shared_settings: Settings) -> AsyncIterator[Place]:
    """Of a worker without a model."""
    with pytest.MonkeyPatch.context() as patch:
        for name in SUMMARY_VARIABLES:
            patch.delenv(name, raising=False)
        async for one in started(shared_settings):
            yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer() as one:
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def modelled(
    broker: EmbeddedBroker, server: OpenAIServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Place]:
    """Of a worker that sums up with a model."""
    settings = settings_of(broker, tmp_path_factory.mktemp("modelled")).model_copy(
        update={
            "llm": LlmSettings.model_validate(
                {"providers": {"some": {"api_key": "sk-test", "base_url": server.base_url}}}
            )
        }
    )
    with pytest.MonkeyPatch.context() as patch:
        for name in SUMMARY_VARIABLES:
            patch.delenv(name, raising=False)
        patch.setenv("NANOBOT_SUMMARY_MODEL", "some/model-1")
        async for one in started(settings):
            yield one


@pytest.fixture
def answering(server: OpenAIServer) -> OpenAIServer:
    """The model, which answers well; it has been asked nothing yet."""
    server.answering = lambda _: Answer(json.dumps(GOOD))
    server.received.clear()
    server.gate.set()
    return server


def request_of(user: str, count: int = 4) -> SummaryRequest:
    """A request of the worker's own."""
    said = [message(i, "user", WORDS[i % len(WORDS)], at=i, user_id=user) for i in range(count)]
    return SummaryRequest(run_id=uuid.uuid4(), user_id=user, date=TODAY, reason="count", messages=said)


# Triggers


async def test_every_ten_user_messages_add_a_summary_to_the_days_file(place: Place) -> None:
    """The counter starts over; the second summary is of what came since, and set apart from the first."""
    await place.talk("ann", 19)
    (first,) = await place.until_runs("ann", 1)
    before = await place.file("ann")
    assert before == (place.folder / "ann" / f"{TODAY}.md").read_text(encoding="utf-8")
    assert before.startswith(f'# {TODAY} · ann\n\n<!-- user: "ann" -->\n\n<!-- run: {first} -->\n')
    titles = [text.removeprefix("## ") for text in before.splitlines() if text.startswith("## ")]
    assert [title[0] for title in titles] == ["📌", "👤", "✅", "📋", "🔧", "💡"]
    assert "message count" in before.splitlines()[-1]
    assert ("ann-18" in before, "ann-20" in before) == (True, False)
    await place.talk("ann", 1, at=1_000, first=38)
    assert (await place.until_runs("ann", 2))[0] == first
    added = (await place.file("ann")).removeprefix(before)
    assert added.startswith("\n---\n\n<!-- run: ")
    assert ("ann-20" in added, "ann-2 " in added) == (True, False)


@pytest.mark.parametrize(
    ("user", "phrase", "said"),
    [
        ("lin", "总结今天的对话", "触发方式：手动"),
        ("mei", "请帮我生成每日概要，谢谢", "触发方式：手动"),
        pytest.param("bob", "Please summarize today for me", "Trigger: manual", marks=pytest.mark.slow),
    ],
)
async def test_who_asks_for_it_gets_it_at_once(place: Place, user: str, phrase: str, said: str) -> None:
    """Whatever the count, and of the whole day: of the user's other sessions, too."""
    words = WORDS if said.startswith("Trigger") else ("我住在杭州，喜欢爬山。", "我偏好使用中文，回答简洁一点。")
    await place.say(user, *words, session="morning")
    await place.say(user, phrase, at=40_000, first=100)
    await place.until_runs(user, 1)
    text = await place.file(user)
    assert text.endswith(f"{said}\n")
    assert f"{user}-0" in text


async def test_a_day_that_is_over_is_summed_up(place: Place) -> None:
    """When something is said on the next one; the next day's words are not in it."""
    await place.talk("eve", 3)
    await place.talk("eve", 1, at=DAY, first=6)
    await place.until_runs("eve", 1)
    text = await place.file("eve")
    assert "end of day" in text.splitlines()[-1]
    assert ("eve-4" in text, "eve-6" in text) == (True, False)
    assert list(await place.days("eve")) == [TODAY]


async def test_the_file_of_a_day_that_is_over_begins_with_one_summary_of_all(place: Place) -> None:
    """Not before. Another session whose day ends later makes it again, and all below it stays."""
    await place.talk("amy", 12)
    await place.until_runs("amy", 1)
    before = await place.file("amy")
    await place.talk("amy", 1, at=DAY, first=24)
    await place.until_runs("amy", 2)
    text = await place.file("amy")
    day = (await place.http.get(f"/v1/summaries/{TODAY}", params={"user_id": "amy"})).json()["merged"]
    assert text.index("<!-- siltstone: day -->") < text.index(day) < text.index("<!-- run: ")
    assert before.partition("<!-- run: ")[2] in text
    assert day.count("I prefer short answers") == 1 < text.partition("<!-- run: ")[2].count("I prefer short answers")
    assert day.endswith("Merged summaries: 2")
    await place.say("amy", "I need to water the plants.", at=3_600, session="evening")
    await place.say("amy", "Good morning.", at=DAY + 60, first=2, session="evening")
    await place.until_runs("amy", 3)
    again = await place.file("amy")
    assert again.count("<!-- siltstone: day -->") == 1
    assert again.endswith("end of day\n")
    assert text.partition("<!-- run: ")[2] in again
    day = (await place.http.get(f"/v1/summaries/{TODAY}", params={"user_id": "amy"})).json()["merged"]
    assert "- [ ] water the plants" in day
    assert day.endswith("Merged summaries: 3")


async def test_a_session_that_is_over_is_summed_up_when_its_day_is(place: Place) -> None:
    """Nothing needs to be said in it."""
    await place.talk("max", 3)
    await feed(place.worker, [(b"max", line(0, "max", "user", 200, type="session_end"))])
    place.worker.clock.observe(START + DAY_MS)
    await place.until_runs("max", 1)
    assert "end of day" in (await place.file("max")).splitlines()[-1]


@pytest.mark.slow
async def test_without_automatic_summaries_requests_are_answered(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`NANOBOT_AUTO_SUMMARY=false`: neither a count nor a day's end makes one; words and the API do."""
    monkeypatch.setenv("NANOBOT_AUTO_SUMMARY", "false")
    async for own in started(settings):
        await own.talk("ann", 25)
        await own.talk("ann", 2, at=DAY, first=50)
        await own.say("ann", "Summarize today", at=DAY + 500, first=60)
        await own.until_runs("ann", 1, TOMORROW)
        await own.ask("ann", date=TODAY)
        await own.until_runs("ann", 1, TODAY)
        assert own.outcomes() == {"written": 2}


# Once, forgotten, elsewhere


async def test_a_request_that_comes_again_adds_nothing(place: Place) -> None:
    request = request_of("kim")
    await place.tell(request)
    before, repeated = await place.file("kim"), place.outcomes().get("repeated", 0)
    assert await place.days("kim") == {TODAY: [str(request.run_id)]}
    await place.tell(request)
    assert await place.file("kim") == before
    assert place.outcomes()["repeated"] == repeated + 1


async def test_of_a_forgotten_user_no_file_is_left_or_written(place: Place) -> None:
    request = request_of("sue")
    await place.tell(request)
    await place.talk("sue", 2, at=500, first=20)
    assert (place.folder / "sue").is_dir()
    (await place.http.delete("/v1/memories", params={"user_id": "sue"})).raise_for_status()
    await until(lambda: not (place.folder / "sue").exists(), alive=place.worker)
    before = place.outcomes().get("forgotten", 0)
    await place.tell(request)
    assert (place.outcomes()["forgotten"], await place.days("sue")) == (before + 1, {})
    assert not (place.folder / "sue").exists()
    assert (await place.http.post("/v1/summaries", json={"user_id": "sue"})).status_code == 404


async def test_what_cannot_be_written_goes_to_the_second_place(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """Which is said, counted, and read as if it were the first."""
    folder = place.folder.parent.parent / "second" / "pat"
    place.folder.mkdir(parents=True, exist_ok=True)
    (place.folder / "pat").write_text("in the way")
    before = place.outcomes().get("written_elsewhere", 0)
    await place.tell(request_of("pat"))
    assert place.outcomes()["written_elsewhere"] == before + 1
    (path,) = folder.iterdir()
    assert await place.file("pat") == path.read_text(encoding="utf-8")
    warned = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert [str(path) in text and "is not writable" in text for text in warned] == [True]
    shutil.rmtree(folder)
    folder.write_text("in the way, too")
    second, third = request_of("pat"), request_of("pat")
    await place.tell(second)
    assert await place.waiting("pat") == [str(second.run_id)]
    (place.folder / "pat").unlink()
    await place.tell(third)
    assert await place.until_runs("pat", 2) == [str(second.run_id), str(third.run_id)]
    await place.until_none_waits("pat")


# HTTP


async def test_a_summary_is_asked_for_over_http(place: Place) -> None:
    """Of the newest day unless another is named; a run id of one's own is taken once."""
    await place.talk("zoe", 2)
    await place.talk("zoe", 1, at=DAY, first=4)
    await place.until_runs("zoe", 1)
    asked = await place.ask("zoe")
    topic, partition = place.worker.topics.summary_requests, place.worker.context.partition_of("zoe")
    run_id, offset, token = asked.pop("run_id"), asked.pop("offset"), asked.pop("token")
    assert asked == {"user_id": "zoe", "date": TOMORROW, "messages": 2, "topic": topic, "partition": partition}
    assert offset >= 0
    assert places.Place.of_token(token) == (topic, partition, offset)
    assert await place.until_runs("zoe", 1, TOMORROW) == [run_id]
    mine, before = str(uuid.uuid4()), place.outcomes()
    for _ in range(2):
        answer = await place.http.post("/v1/summaries", json={"userId": "zoe", "date": TODAY, "runId": mine})
        assert (answer.status_code, answer.json()["messages"], answer.json()["run_id"]) == (202, 4, mine)
    assert (await place.until_runs("zoe", 2))[1] == mine
    await until(lambda: sum(place.outcomes().values()) == sum(before.values()) + 2, alive=place.worker)
    assert place.outcomes().get("repeated", 0) == before.get("repeated", 0) + 1


async def test_days_are_listed_and_read(place: Place) -> None:
    await place.talk("tim", 2)
    await place.talk("tim", 2, at=DAY, first=4)
    await place.talk("tim", 1, at=3 * DAY, first=8)
    first = await place.until_runs("tim", 1)
    second = await place.until_runs("tim", 1, TOMORROW)
    assert await place.days("tim") == {TODAY: first, TOMORROW: second}
    assert await place.days("tim", to=TODAY) == {TODAY: first}
    assert await place.days("tim", **{"from": TOMORROW, "to": TOMORROW}) == {TOMORROW: second}
    assert await place.days("tim", **{"from": "2026-01-03"}) == {}
    day = (await place.http.get(f"/v1/summaries/{TODAY}", params={"user_id": "tim"})).json()
    markdown = place.worker.summaries.files.read("tim", date(2026, 1, 1))
    assert day == {"user_id": "tim", "date": TODAY, "markdown": markdown, "merged": None, "runs": first}
    missing = await place.http.get("/v1/summaries/2026-01-03", params={"user_id": "tim"})
    assert (missing.status_code, "2026-01-03" in missing.json()["detail"]) == (404, True)
    pipeline = (await place.http.get("/v1/stats/pipeline")).json()
    assert pipeline["summaries"] == place.outcomes()


async def test_of_a_day_that_the_windows_do_not_hold_none_is_made(place: Place) -> None:
    """Nor of one on which nobody but a tool has spoken."""
    await feed(place.worker, [(b"roy", line(0, "roy", "tool", 0, content="42"))])
    for fields in ({"user_id": "nobody"}, {"user_id": "roy"}, {"user_id": "roy", "date": "2025-12-31"}):
        answer = await place.http.post("/v1/summaries", json=fields)
        assert answer.status_code == 404
        assert "24 h (memory.capacity, memory.ttl_seconds)" in answer.json()["detail"]


async def test_a_file_that_cannot_be_read_is_no_missing_one(place: Place) -> None:
    (place.folder / "una" / f"{TODAY}.md").mkdir(parents=True)
    for path in (f"/v1/summaries/{TODAY}", "/v1/summaries"):
        answer = await place.http.get(path, params={"user_id": "una"})
        detail = answer.json()["detail"]
        assert (answer.status_code, "SummaryFilesError" in detail, str(place.folder) in detail) == (500, True, False)
        assert "retry-after" not in answer.headers


async def test_a_wrong_request_is_refused(settings: Settings) -> None:
    transport = httpx.ASGITransport(api_of(settings))  # nothing is read or written, so nothing needs to run
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        wrong: Sequence[dict[str, Any]] = [
            {"user_id": ""},
            {"date": "2026-02-30"},
            {"date": "20260101"},
            {"date": 1_767_225_600},
            {"run_id": "mine"},
            {"day": TODAY},
        ]
        for fields in wrong:
            answer = await client.post("/v1/summaries", json={"user_id": "u", **fields})
            assert answer.status_code == 422, fields
        for path in ("/yesterday", "/2026-1-1", "?from=1767225600", "?from=2026-01-02&to=2026-01-01"):
            answer = await client.get(f"/v1/summaries{path}", params={"user_id": "u"} if "?" not in path else None)
            assert answer.status_code == 422, path


# A model


async def test_the_models_summary_is_in_the_file(modelled: Place, answering: OpenAIServer) -> None:
    """It is asked as the environment says, once. What no message holds is cut."""
    told = "We use DuckDB, because it is one file. The index is slow, so we rebuild it."
    await modelled.say("ann", WORDS[0], told, *(f"This is number {i}." for i in range(8)))
    await modelled.until_runs("ann", 1)
    text = await modelled.file("ann")
    assert "**Technical decision**: Use DuckDB <!-- sources: ann-2 ann-3 -->" in text
    assert "Rebuild it" in text
    assert "milk" not in text
    (request,) = answering.received
    assert (request.body["model"], request.body["max_tokens"]) == ("model-1", 4_000)
    assert len(request.quoted["messages"]) == 19


async def test_what_the_model_fails_at_is_made_with_the_next_trigger(
    modelled: Place, answering: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing stands in a file meanwhile; then one summary does, which answers both."""
    answering.script(Answer(status=500))
    before = modelled.outcomes().get("failed", 0)
    await modelled.talk("bob", 10)
    await until(lambda: modelled.outcomes().get("failed", 0) > before, alive=modelled.worker)
    (failed,) = await modelled.waiting("bob")
    assert await modelled.days("bob") == {}
    assert any("was not summed up by the model: InternalServerError" in record.message for record in caplog.records)
    await modelled.talk("bob", 10, at=1_000, first=20)
    runs = await modelled.until_runs("bob", 2)
    assert (runs[0], len(answering.received)) == (failed, 2)
    assert [len(request.quoted["messages"]) for request in answering.received] == [19, 39]
    assert (await modelled.file("bob")).count("## 📌") == 1
    await modelled.until_none_waits("bob")


async def test_the_conversation_does_not_wait_for_the_model(modelled: Place, answering: OpenAIServer) -> None:
    """While it is silent, messages are taken in and answered about."""
    answering.gate.clear()
    await modelled.talk("eve", 10)
    await until(lambda: answering.under_way == 1, alive=modelled.worker)
    await modelled.talk("eve", 5, at=1_000, first=20)
    await modelled.talk("sue", 5)
    context = await modelled.http.get("/v1/context", params={"user_id": "eve", "session_id": "eve-s"})
    assert "This is number 14." in context.json()["prompt"]
    assert (answering.under_way, await modelled.days("eve")) == (1, {})
    late = await modelled.command("summarize", "--user", "eve", "--timeout", "0.1")
    assert "was not written within 0.1 s" in str(late.exception)
    assert modelled.worker.topics.summary_requests in str(late.exception)
    answering.gate.set()
    await modelled.until_runs("eve", 2)


# Commands


async def test_summarize_shows_what_it_had_made(place: Place) -> None:
    """For people without its comments; for programs as it stands in the file."""
    await place.talk("ida", 3)
    shown = await place.command("summarize", "--user", "ida")
    assert shown.exit_code == 0, shown.exception
    assert "📌 Main topics" in shown.output
    assert ("<!--" in shown.output, "sources" in shown.output) == (False, False)
    answer = orjson.loads((await place.command("summarize", "--user", "ida", "--date", TODAY, "--json")).stdout)
    assert (answer["user_id"], answer["date"], answer["messages"]) == ("ida", TODAY, 6)
    assert answer["run_id"] == (await place.days("ida"))[TODAY][1]
    assert (await place.file("ida")).endswith(f"<!-- run: {answer['run_id']} -->\n{answer['markdown']}\n")


async def test_summaries_shows_days_or_one_of_them(place: Place) -> None:
    await place.tell(request_of("leo"))
    await place.tell(request_of("leo"))
    user = ("summaries", "--user", "leo")
    listed = (await place.command(*user)).output
    assert [text.split()[1::2] for text in listed.splitlines() if TODAY in text] == [[TODAY, "2"]]
    assert orjson.loads((await place.command(*user, "--json")).stdout)["days"][0]["date"] == TODAY
    assert "There are no such summaries" in (await place.command(*user, "--from", TOMORROW)).output
    shown = await place.command(*user, TODAY)
    assert (shown.output.count("📌"), "<!--" in shown.output) == (2, False)
    answer = orjson.loads((await place.command(*user, TODAY, "--json")).stdout)
    assert answer["markdown"] == await place.file("leo")


@pytest.mark.slow
async def test_what_a_command_cannot_do_is_one_clear_line(place: Place) -> None:
    for words, said in (
        (("summarize", "--user", "nobody"), "the windows have no messages"),
        (("summaries", "--user", "nobody", TODAY), "there is no summary of 2026-01-01 for user nobody"),
    ):
        result = await siltstone(*words, "--url", place.url)
        assert (result.returncode, len(result.stderr.splitlines()), said in result.stderr) == (1, 1, True)


@pytest.mark.parametrize(
    "words",
    [
        ("summarize",),
        ("summarize", "--user", "u", "--date", "today"),
        ("summaries", "--user", "u", "2026-02-30"),
        ("summaries", "--user", "u", "--from", TODAY, TODAY),
    ],
)
async def test_wrong_usage_is_said(words: tuple[str, ...]) -> None:
    assert (await asyncio.to_thread(CliRunner().invoke, cli, words)).exit_code == 2


async def test_summarize_says_that_the_model_failed(modelled: Place, answering: OpenAIServer) -> None:
    """Without waiting for the end of its patience."""
    answering.script(Answer(status=500))
    await modelled.talk("tom", 2)
    result = await modelled.command("summarize", "--user", "tom")
    assert "failed, and is tried again with the next summary of tom" in str(result.exception)
