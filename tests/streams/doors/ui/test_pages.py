"""Each screen shows what is there, as text; what is done on it goes into the log."""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from schemas.events import Remember
from streams.doors.ui.my_memory import lines_of
from streams.doors.ui.session import COOKIE, form_token
from streams.worker.health import WorkerHealth
from tests.streams.doors.ui.opened import browser, unsafe_parts
from tests.support.making import START, line
from tests.support.talk import Talk, talk
from tests.support.waiting import until

NASTY = """<script>alert(1)</script><img src=x onerror=alert(1)>"'</textarea>{{7*7}}<!--"""
MEMORY = uuid.UUID(int=7)


@pytest.fixture
async def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Talk]:
    async with talk(tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture
async def http(here: Talk) -> AsyncIterator[httpx.AsyncClient]:
    async with browser(here.worker) as client:
        yield client


def remembered(text: str, *, user: str = "u", memory_id: uuid.UUID = MEMORY, **fields: Any) -> Remember:
    return Remember(
        event_id=uuid.uuid4(), user_id=user, timestamp=START, text=text, memory_id=memory_id, importance=80, **fields
    )


async def done(here: Talk, http: httpx.AsyncClient, path: str, **fields: str) -> httpx.Response:
    """A form of the session, and its effect."""
    await http.get("/ui/login")
    answer = await http.post(path, data={"form_token": form_token(http.cookies[COOKIE]), **fields})
    await here.applied()
    return answer


async def test_what_was_said_is_text_wherever_it_stands(here: Talk, http: httpx.AsyncClient) -> None:
    """In a window, a memory, the prompt, a user's and a session's name, a form, a chart and a title."""
    evil = f"u{NASTY}"
    here.worker.service.live.flow.look()
    await here.say(
        line(
            0, evil, "user", 0, content=f"please remember that {NASTY}", session_id=NASTY, name=NASTY, emotion=NASTY
        ),
        line(1, evil, "assistant", 1, content=NASTY, session_id=NASTY),
        line(2, evil, "user", 2, content="and?", session_id=NASTY),
        user=evil,
    )
    await here.applied(
        remembered(NASTY, user=evil, metadata={NASTY: NASTY}, session_id=NASTY), remembered("it", user=evil)
    )
    pages = [
        ("/ui/overview", {}),
        ("/ui/flow", {}),
        ("/ui/flow", {"user_id": evil, "reason": NASTY, "follow": NASTY, "session_id": NASTY}),
        ("/ui/sessions", {}),
        ("/ui/session", {"user_id": evil, "session_id": NASTY}),
        ("/ui/memories", {}),
        ("/ui/memories", {"user_id": evil}),
        ("/ui/memories", {"user_id": evil, "text": NASTY}),
        (f"/ui/memories/{MEMORY}", {"user_id": evil}),
        ("/ui/search", {"user_id": evil, "q": NASTY, "session_id": NASTY}),
        ("/ui/lifecycle", {}),
        ("/ui/me", {"user_id": evil}),
        ("/ui/memories/x", {"user_id": NASTY}),
        ("/ui/login", {"next": f"/ui/{NASTY}"}),
    ]
    for path, query in pages:
        answer = await http.get(path, params=query)
        assert answer.status_code < 500, (path, answer.text)
        assert unsafe_parts(answer.text) == [], path
        assert "<script>alert" not in answer.text
        assert "<img src=x" not in answer.text


async def test_a_message_is_followed_to_its_memory(here: Talk, http: httpx.AsyncClient) -> None:
    """Nothing is noted before somebody looks; then each step is, and an id finds those that it went through."""
    await here.say(line(0, "u", "user", 0, content="not seen"))
    assert "No steps since you opened this page" in (await http.get("/ui/flow")).text
    await here.say(
        line(1, "u", "user", 1, content="Please remember that my locker opens with 90210.", session_id="s"),
        line(2, "u", "assistant", 2, content="I will.", session_id="s"),
        line(3, "u", "user", 3, content="Thanks", session_id="s"),
    )
    await here.applied()
    steps = (await http.get("/ui/worker/flow", headers={"accept": "application/json"})).json()["steps"]
    kinds = [step["kind"] for step in steps if "u-1" in step["message_ids"]]
    assert kinds == ["message", "exchange", "promoted", "memory"]
    promoted = next(step for step in steps if step["kind"] == "promoted")
    assert (promoted["reason"], promoted["importance"], promoted["parts"]["total"]) == ("forced", 100, 1000)
    followed = (await http.get("/ui/flow/steps", params={"follow": "u-1"})).text
    assert followed.count("<li>") == 4
    assert "Thanks" not in followed
    assert (await http.get("/ui/flow/steps", params={"reason": "forced"})).text.count("<li>") == 2
    assert (await http.get("/ui/flow/steps", params={"session_id": "s", "reason": "message"})).text.count("<li>") == 3


async def test_a_session_shows_each_exchange_with_its_decision_and_what_would_change_it(
    here: Talk, http: httpx.AsyncClient
) -> None:
    await here.say(
        line(0, "u", "user", 0, content="Please remember that I live in Oslo", session_id="s"),
        line(1, "u", "assistant", 1, content="Noted.", session_id="s"),
        line(2, "u", "user", 2, content="How long do eggs take?", session_id="s"),
    )
    page = (await http.get("/ui/session", params={"user_id": "u", "session_id": "s"})).text
    assert page.index("How long do eggs take?") < page.index("I live in Oslo")
    assert ('<span class="chip open">open</span>' in page, '<span class="chip promoted">promoted</span>' in page) == (
        True,
        True,
    )
    assert page.count("What would change it.") == 2
    assert "/ui/session?user_id=u&amp;session_id=s" in (await http.get("/ui/sessions")).text


async def test_memories_are_chosen_by_text_state_and_filter(here: Talk, http: httpx.AsyncClient) -> None:
    await here.applied(
        remembered("I live in Oslo"),
        remembered("My cat is called Tom", memory_id=uuid.UUID(int=8)),
        remembered("somebody else's", user="v", memory_id=uuid.UUID(int=9)),
    )

    async def shown(**chosen: Any) -> set[str]:
        page = (await http.get("/ui/memories", params={"user_id": "u", **chosen})).text
        return {text for text in ("I live in Oslo", "My cat is called Tom", "somebody else") if text in page}

    assert await shown() == {"I live in Oslo", "My cat is called Tom"}
    assert await shown(text="CAT") == {"My cat is called Tom"}
    assert await shown(state="active", filter="importance:gte:80 kind:eq:remember") == await shown()
    assert await shown(filter="importance:gt:80") == set()
    assert await shown(state="deprecated") == await shown(state="archived") == set()
    assert (await http.get("/ui/memories", params={"user_id": "u", "filter": "nonsense"})).status_code == 422
    users = (await http.get("/ui/memories")).text
    assert "/ui/memories?user_id=u" in users
    assert "/ui/memories?user_id=v" in users


async def test_a_memory_is_pinned_corrected_replaced_archived_restored_and_forgotten(
    here: Talk, http: httpx.AsyncClient
) -> None:
    """Each by a form, which writes an event like everybody's."""
    await here.applied(remembered("I live in Oslo"), remembered("I live in Rome", memory_id=uuid.UUID(int=8)))
    address = f"/ui/memories/{MEMORY}"

    async def page() -> str:
        return (await http.get(address, params={"user_id": "u"})).text

    assert "then halves every" in await page()
    pinned = await done(here, http, f"{address}/pin?user_id=u")
    assert (pinned.status_code, pinned.headers["location"].startswith(f"{address}?user_id=u&said=")) == (303, True)
    assert "Pinned memories do not decay" in await page()
    await done(here, http, f"{address}/unpin?user_id=u")
    assert "Pinned memories do not decay" not in await page()
    await done(here, http, f"{address}/edit?user_id=u", text="I live in Bergen")
    assert "I live in Bergen" in await page()
    await done(here, http, f"{address}/supersede?user_id=u", by=str(uuid.UUID(int=8)))
    assert ("replaced by a newer one" in await page(), "held until" in await page()) == (True, True)
    await done(here, http, f"{address}/hold?user_id=u")
    assert ("replaced by a newer one" in await page(), "It still holds" in await page()) == (False, False)
    await done(here, http, f"{address}/archive?user_id=u")
    assert "Restore" in await page()
    assert "I live in Bergen" in (await http.get("/ui/memories?user_id=u&state=archived")).text
    await done(here, http, f"{address}/restore?user_id=u")
    assert "Archive" in await page()
    history = re.findall(r"<li><b>(\w+)</b>", await page())
    assert history[0] == "created"
    assert {"pinned", "unpinned", "edited", "superseded"} <= set(history)
    gone = await done(here, http, f"{address}/forget?user_id=u", back="me")
    assert gone.headers["location"].startswith("/ui/me?user_id=u")
    assert (await http.get(address, params={"user_id": "u"})).status_code == 404


async def test_a_newer_text_takes_a_memorys_place(here: Talk, http: httpx.AsyncClient) -> None:
    await here.applied(remembered("I live in Oslo"))
    await done(here, http, f"/ui/memories/{MEMORY}/supersede?user_id=u", text="I moved to Rome")
    mine = (await http.get("/ui/me?user_id=u")).text
    assert ("I moved to Rome" in mine, "I live in Oslo" in mine) == (True, False)


@pytest.mark.parametrize(
    ("action", "fields"),
    [
        ("edit", {"text": ""}),
        ("supersede", {"by": "x"}),
        ("supersede", {"by": str(MEMORY)}),
        ("supersede", {"text": ""}),
    ],
)
async def test_what_is_no_event_is_not_written(
    action: str, fields: dict[str, str], here: Talk, http: httpx.AsyncClient
) -> None:
    await here.applied(remembered("I live in Oslo"))
    before = len(here.log.records[here.worker.topics.long_term])
    assert (await done(here, http, f"/ui/memories/{MEMORY}/{action}?user_id=u", **fields)).status_code == 422
    assert len(here.log.records[here.worker.topics.long_term]) == before


async def test_the_search_lab_ranks_by_words_by_meaning_and_by_both_and_counts_as_no_access(
    here: Talk, http: httpx.AsyncClient
) -> None:
    await here.applied(remembered("I live in Oslo"), remembered("My cat is called Tom", memory_id=uuid.UUID(int=8)))
    await here.say(line(0, "u", "user", 0, content="Nice weather", session_id="s"))
    page = (await http.get("/ui/search", params={"user_id": "u", "q": "Where do I live?", "session_id": "s"})).text
    columns = re.split(r"<h2>By (?:words|meaning|both)</h2>", page)[1:]
    assert len(columns) == 3
    assert all(column.index("I live in Oslo") < column.index("My cat") for column in columns)
    prompt = page.partition('id="prompt"')[2]
    assert "What is known of the user:" in prompt
    assert "user: Nice weather" in prompt
    await here.worker.recall.tell_accesses()
    assert [
        record for record in here.log.records[here.worker.topics.long_term] if b'"touch"' in (record.value or b"")
    ] == []


async def test_the_lifecycle_counts_states_and_tries_a_cleanup_dry(here: Talk, http: httpx.AsyncClient) -> None:
    assert "No memory changed its state" in (await http.get("/ui/lifecycle")).text
    await here.applied(remembered("I live in Oslo"))
    page = (await http.get("/ui/lifecycle", params={"days": 7})).text
    assert "1 memories as of" in page or "1 memory" in page
    assert "active 1 · 100.0 %" in page
    assert "No candidates" in page


async def test_the_owner_takes_everything_along_and_has_it_forgotten(here: Talk, http: httpx.AsyncClient) -> None:
    await here.applied(remembered("I live in Oslo"))
    await here.say(line(0, "u", "user", 0, content="Hello", session_id="s"))
    file = await http.get("/ui/me/export", params={"user_id": "u"})
    assert "attachment" in file.headers["content-disposition"]
    everything = orjson.loads(file.content)
    assert [one["memory"] for one in everything["memories"]] == ["I live in Oslo"]
    assert [one["content"] for one in everything["said_lately"]] == ["Hello"]
    assert (await done(here, http, "/ui/me/forget?user_id=u", sure="v")).status_code == 422
    assert (await done(here, http, "/ui/me/forget?user_id=u", sure="u")).status_code == 303
    left = orjson.loads((await http.get("/ui/me/export", params={"user_id": "u"})).content)
    assert (left["memories"], left["said_lately"], left["daily_notes"]) == ([], [], {})


async def test_a_days_notes_are_shown_without_what_a_browser_would_obey(here: Talk, http: httpx.AsyncClient) -> None:
    assert (await http.get("/ui/me/notes/2026-01-01", params={"user_id": "u"})).status_code == 404
    assert (await http.get("/ui/me/notes/yesterday", params={"user_id": "u"})).status_code == 422
    read = lines_of(f"# 2026-01-01\n\n## 📌 Topics\n- {NASTY}\n**bold**\n---\n<!-- run 1 -->\n\x07")
    assert [one.kind for one in read] == ["title", "head", "item", "text", "rule"]
    assert (read[2].text, read[3].text) == (NASTY, "bold")


async def test_the_overview_says_why_a_worker_is_not_ready_and_what_each_partition_does(
    here: Talk, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await until(lambda: here.worker.health.ready)
    assert "<b>Ready.</b>" in (await http.get("/ui/overview")).text
    with monkeypatch.context() as patch:
        patch.setattr(WorkerHealth, "not_ready", lambda _: ["the embedding model is being loaded"])
        page = (await http.get("/ui/overview")).text
    assert "<b>Not ready yet.</b>" in page
    assert "<li>the embedding model is being loaded</li>" in page
    here.worker.context.readings.take({(here.worker.topics.conversations, 0): 12}, START)
    await here.say(line(0, "u", "user", 0, content="Hello", session_id="s"))
    here.worker.context.readings.take({(here.worker.topics.conversations, 0): 30}, START + 10_000)
    now = (await http.get("/ui/overview/now")).text
    assert ">30<" in now
    charts = (await http.get("/ui/overview/charts", headers={"accept": "application/json"})).json()
    assert charts["lags"] == {
        "kind": "time",
        "unit": "records",
        "labels": ["partition 0"],
        "data": [[(START + 10_000) // 1000], [30]],
    }
    assert charts["rates"]["data"][1] == [0.1]
