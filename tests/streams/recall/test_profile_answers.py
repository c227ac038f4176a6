"""A user's profile by HTTP, in the context, by the command, by MCP's text and on the dashboard."""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from click.testing import CliRunner

from schemas.events import Edit, Forget, Pin, Remember
from schemas.sources import SOURCES
from streams.doors.cli import cli
from streams.doors.mcp import rendering
from tests.streams.doors.ui.opened import Doorkeeper, browser, unsafe_parts
from tests.support.making import START, line, promotion
from tests.support.talk import Talk, talk

DAY = 86_400_000
HOME, SISTER, TEA = uuid.UUID(int=1), uuid.UUID(int=2), uuid.UUID(int=3)


@pytest.fixture
async def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Talk]:
    async with talk(tmp_path, monkeypatch) as made:
        yield made


def remembered(identity: uuid.UUID, text: str, at: int = START, user: str = "u", **fields: Any) -> Remember:
    return Remember(
        event_id=uuid.uuid4(), user_id=user, timestamp=at, text=text, memory_id=identity, importance=80, **fields
    )


KNOWN = (
    remembered(HOME, "I live in Bergen."),
    remembered(SISTER, "我妹妹小美在北京上班。", START + DAY),
    remembered(TEA, "I love green tea.", START + 2 * DAY),
)


async def profile(http: httpx.AsyncClient, **asked: Any) -> dict[str, Any]:
    answer = await http.get("/v1/profile", params={"user_id": "u", **asked})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def texts(found: dict[str, Any]) -> list[str]:
    return [one["text"] for section in found["sections"] for one in section["lines"]]


async def test_a_profile_is_lines_with_ids_and_dates_and_one_text(here: Talk) -> None:
    await here.applied(*KNOWN)
    async with here.http() as http:
        found = await profile(http)
        assert found["sections"][0] == {
            "part": "about",
            "lines": [
                {
                    "text": "I live in Bergen.",
                    "memory_ids": [str(HOME)],
                    "said_at": "2026-01-01T00:00:00.000Z",
                    "due": None,
                }
            ],
            "reworded": False,
        }
        assert texts(found) == ["I live in Bergen.", "我妹妹小美在北京上班。", "I love green tea."]
        assert found["text"].startswith("About the user:\n- [2026-01-01] I live in Bergen.\nPeople and pets:\n")
        assert (found["user_id"], found["left_out"], found["reference_date"]) == ("u", 0, "2026-01-03")
        assert 0 < found["tokens"] <= 300
        assert "partial" not in found
        assert "partial" in await profile(http, partial="allow")
        nobody = await profile(http, user_id="nobody")
        assert (nobody["sections"], nobody["text"], nobody["tokens"]) == ([], "", 0)
        listed = (await http.get("/v1/memories", params={"user_id": "u"})).json()["memories"]
        assert {one["access_count"] for one in listed} == {0}, "it is no access"


async def test_what_is_forgotten_edited_or_pinned_shows_at_once(here: Talk) -> None:
    await here.applied(*KNOWN)
    async with here.http() as http:
        before = texts(await profile(http))
        await here.applied(Forget(event_id=uuid.uuid4(), user_id="u", timestamp=START + 3 * DAY, memory_id=HOME))
        assert texts(await profile(http)) == before[1:]
        await here.applied(
            Edit(
                event_id=uuid.uuid4(), user_id="u", timestamp=START + 3 * DAY, memory_id=TEA, text="I love black tea."
            ),
            Pin(event_id=uuid.uuid4(), user_id="u", timestamp=START + 3 * DAY, memory_id=SISTER),
        )
        found = await profile(http)
        assert [one["part"] for one in found["sections"]] == ["pinned", "preferences"]
        assert texts(found) == [before[1], "I love black tea."]
        gone = await http.get("/v1/profile", params={"user_id": "u", "at_least": "nonsense"})
        assert gone.status_code == 422, "it takes a consistency token as other reads do"


async def test_tasks_are_those_of_the_day_that_is_asked_for(here: Talk) -> None:
    await here.applied(remembered(HOME, "My exam is on 9 January 2026 at 23:00."))
    async with here.http() as http:
        (section,) = (await profile(http, reference_date="2026-01-09"))["sections"]
        assert (section["part"], section["lines"][0]["due"]) == ("tasks", "2026-01-10T00:00:00.000Z")
        assert texts(await profile(http, reference_date="2026-01-10")) == []
        wrong = await http.get("/v1/profile", params={"user_id": "u", "reference_date": "soon"})
        assert wrong.status_code == 422


async def test_an_exchange_tells_of_the_user_and_not_of_the_assistant(here: Talk) -> None:
    given = promotion("Hello!\nI live in Paris.", "0")
    await here.applied(given)
    async with here.http() as http:
        assert texts(await profile(http)) == []
        named = given.model_copy(
            update={
                "memory_id": uuid.uuid4(),
                "event_id": uuid.uuid4(),
                "text": "Ann: I live in Oslo.\nBob: I live in Rome.",
                "speakers": ["Ann", "Bob"],
                "sources": ["assistant:Bob", "user:Ann"],
            }
        )
        await here.applied(named)
        assert texts(await profile(http)) == ["I live in Oslo."]
        (listed,) = [
            one
            for one in (await http.get("/v1/memories", params={"user_id": "u"})).json()["memories"]
            if one["id"] == str(named.memory_id)
        ]
        assert listed["metadata"][SOURCES] == ["assistant:Bob", "user:Ann"]


async def test_the_prompt_begins_with_the_profile_and_repeats_none_of_it(here: Talk) -> None:
    await here.applied(*KNOWN, remembered(uuid.UUID(int=4), "The harbour in Bergen is old and cold"))
    await here.say(line(1, "u", "user", 3 * 86_400, content="where do I live in Bergen?"))
    async with here.http() as http:
        asked = {"user_id": "u", "session_id": "u-s", "q": "Bergen harbour, live"}
        plain = (await http.get("/v1/context", params=asked)).json()
        assert plain["profile"] is None
        assert "Who the user is" not in plain["prompt"]
        found = (await http.get("/v1/context", params={**asked, "profile": True})).json()
        assert texts(found["profile"]) == texts(await profile(http))
        known = found["prompt"].split("<memories>\n")[1]
        assert known.startswith(f"Who the user is:\n{found['profile']['text']}\n\nWhat is known of the user:\n")
        assert found["prompt"].count("I live in Bergen.") == 1
        assert "The harbour in Bergen" in found["prompt"]
        assert str(HOME) in {hit["id"] for hit in found["memories"]}, "it is a hit all the same"

        most = 200
        then = await http.get("/v1/context", params={**asked, "profile": True, "as_of": "2026-01-01"})
        assert (then.status_code, then.json()["detail"].partition(":")[0]) == (422, "profile")
        short = (await http.get("/v1/context", params={**asked, "profile": True, "max_tokens": most})).json()
        assert short["profile"]["tokens"] <= most // 3
        assert short["prompt_tokens"] <= most
        assert texts(short["profile"])[0] == "I live in Bergen."


async def test_another_users_profile_is_none(here: Talk) -> None:
    await here.applied(*KNOWN, remembered(uuid.UUID(int=5), "I live in Rome.", user="v"))
    doorkeeper = Doorkeeper()
    headers = {"Authorization": f"Bearer {doorkeeper.token('v')}"}
    async with browser(here.worker, doorkeeper.admission) as http:
        assert (await http.get("/v1/profile", params={"user_id": "v"})).status_code == 401
        own = await http.get("/v1/profile", headers=headers)
        assert texts(own.json()) == ["I live in Rome."], "the guard writes in whose it is"
        other = await http.get("/v1/profile", params={"user_id": "u"}, headers=headers)
        nobodys = await http.get("/v1/profile", params={"user_id": "w"}, headers=headers)
        assert (other.status_code, other.json()) == (404, nobodys.json())


async def test_the_screens_show_who_a_user_is(here: Talk) -> None:
    await here.applied(*KNOWN, remembered(uuid.UUID(int=6), "My dog Rex has a <b>bone</b>.", START + 3 * DAY))
    async with browser(here.worker) as http:
        mine = (await http.get("/ui/me", params={"user_id": "u"})).text
        theirs = (await http.get("/ui/memories", params={"user_id": "u"})).text
        for page in (mine, theirs):
            assert unsafe_parts(page) == []
            who = page.split('id="who"')[1].split("</section>")[0]
            assert re.findall(r"<h3>(.*?)</h3>", who) == [
                "About the user",
                "People and pets",
                "Likes and dislikes",
            ]
            assert "我妹妹小美在北京上班。" in who
            assert "My dog Rex has a ‹b›bone‹/b›." in who
        assert f'href="/ui/memories/{SISTER}?user_id=u"' in theirs
        assert "Who you are" in mine
        nobody = (await http.get("/ui/me", params={"user_id": "nobody"})).text
        assert "Nothing is known of who this is" in nobody
        filtered = await http.get("/ui/memories", params={"user_id": "u", "text": "tea"})
        assert 'id="who"' not in filtered.text


ANSWER = {"sections": [], "text": "Pinned:\n- [2026-01-01] [red]Tea", "tokens": 9, "left_out": 0, "user_id": "u"}


@pytest.mark.parametrize(
    ("answer", "words", "shown"),
    [
        (ANSWER, ["u"], "Pinned:\n- [2026-01-01] [red]Tea\n"),
        ({**ANSWER, "text": ""}, ["u"], "Nothing is known of who u is.\n"),
        (ANSWER, ["u", "--json"], orjson.dumps(ANSWER).decode() + "\n"),
    ],
)
def test_the_command_shows_the_text(
    answer: dict[str, Any], words: list[str], shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def ask(*_: object, **asked: Any) -> dict[str, Any]:
        seen.append(asked)
        return answer

    monkeypatch.setattr("streams.doors.cli.profile.ask", ask)
    given = ["--timezone", "Europe/Oslo", "--url", "http://127.0.0.1:1"]
    done = CliRunner(env={"COLUMNS": "160"}).invoke(cli, ["profile", *words, *given])
    assert (done.exit_code, done.output) == (0, shown)
    assert seen == [{"params": {"user_id": "u", "timezone": "Europe/Oslo"}}]


def test_the_command_without_a_user_is_wrong_usage() -> None:
    done = CliRunner().invoke(cli, ["profile"])
    assert done.exit_code == 2
    assert "Missing argument 'USER'" in done.output


def test_an_assistant_reads_the_profile_as_data() -> None:
    shown = rendering.profile({"text": "Pinned:\n- Tea"})
    assert shown.startswith(f"Who the user is. {rendering.DATA}\n")
    assert rendering.profile({"text": ""}) == "Nothing is known of who the user is yet."
