"""What is said is found at once: short-term windows beside memories, on one scale, and nothing twice."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from schemas.errors import EmbeddingUnavailable
from schemas.events import Archive, Forget, ForgetUser, Remove
from schemas.ids import memory_id
from schemas.memories import SHORT_TERM, SearchHit, State
from streams.recall.context import ContextQuery
from streams.recall.filtering import Filter
from streams.recall.windows import BY_WORDS, MOST, NEWEST
from streams.telemetry.metrics import labelled
from tests.support.calls import Calls
from tests.support.making import START, line, promotion
from tests.support.talk import Talk, talk
from tests.support.waiting import until

OSLO = "I just moved to Oslo, I'm a structural engineer"

#: What changes something says that it is written so, without a body too.
JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Talk]:
    async with talk(tmp_path, monkeypatch) as made:
        yield made


def said(i: int, content: str, *, at: int = 0, role: str = "user", **fields: Any) -> bytes:
    """The i-th message of u, in session u-s unless another one is given."""
    return line(i, "u", role, at, content=content, **fields)


def texts(hits: list[SearchHit]) -> list[str]:
    return [hit.memory for hit in hits]


async def test_what_was_just_said_is_found_while_its_exchange_is_open(here: Talk) -> None:
    await here.say(
        said(0, OSLO, name="Ann", emotion="happy", agent_id="planner", metadata={"mood": "fine"}),
        said(1, "Welcome!", at=1, role="assistant"),
    )
    (hit,) = await here.found("Where do I live, in Oslo?")
    assert hit.id == memory_id("u", "u-s", ("u-0", "u-1"))
    assert (hit.state, hit.kind, hit.session_id, hit.message_ids) == ("short_term", "exchange", "u-s", ["u-0", "u-1"])
    assert (hit.memory, hit.agent_id) == (f"Ann: {OSLO}\nWelcome!", "planner")
    assert hit.metadata == {
        "mood": "fine",
        "emotion": "happy",
        "speakers": ["Ann"],
        "siltstone.sources": ["assistant", "user:Ann"],
    }
    assert 0 < hit.importance == hit.score <= 100
    assert hit.relevance > 0.5


async def test_what_was_said_is_embedded_as_a_document_and_what_is_asked_as_a_question(here: Talk) -> None:
    """Also where the words are the same: an exchange is compared like the memory that it may become."""
    await here.say(said(0, OSLO), said(1, "Welcome!", at=1, role="assistant"))
    await here.found("Where in Oslo? Who is an engineer?")
    await here.found(OSLO)
    exchanges = {text for text, sides in here.model.sides.items() if "document" in sides}
    asked = {text for text, sides in here.model.sides.items() if "question" in sides}
    assert {text.split("\n")[0] for text in exchanges} == {OSLO}
    assert {"Where in Oslo?", "Who is an engineer?"} <= asked
    assert OSLO in {text.rstrip(".") for text in asked}


async def test_all_sessions_of_the_user_are_looked_through_and_nobody_elses(here: Talk) -> None:
    await here.say(said(0, "my cat is called Tom", session_id="a"), said(1, "my dog is called Rex", session_id="b"))
    await here.say(line(0, "v", "user", 0, content="my cat is called Felix"), user="v")
    assert texts(await here.found("What is my cat called?")) == ["my cat is called Tom", "my dog is called Rex"]


async def test_what_the_window_drops_is_found_until_it_expires(here: Talk) -> None:
    """Promotion keeps nothing of small talk; a day after its last message it is gone, to the millisecond."""
    await here.say(said(0, "nice weather in the mountains"), said(1, "", at=1, type="session_end"))
    assert here.promoted == 0
    await here.say(line(0, "v", "user", at=86_399, content="hello"), user="v")
    assert texts(await here.found("How is the weather?")) == ["nice weather in the mountains"]
    await here.say(line(1, "v", "user", at=86_400, content="hello again"), user="v")
    assert await here.found("How is the weather?") == []


async def test_messages_of_systems_and_tools_and_empty_ones_are_not_found(here: Talk) -> None:
    await here.say(
        said(0, "You are a helpful guide to Oslo", role="system", session_id="a"), said(1, "", session_id="b")
    )
    assert await here.found("Oslo") == []


async def test_an_exchange_is_ranked_as_the_memory_that_it_becomes(here: Talk) -> None:
    """Beside other memories, and in its session: each hit is as relevant before its promotion is applied as after."""
    exchanges = ["I love skiing near Oslo", "my sister lives in Bergen", "so do I", "the train to Bergen was late"]
    await here.applied(promotion("skiing boots cost a lot", "0"), promotion("my brother lives in Turin", "1"))
    for place, text in enumerate(exchanges):
        await here.say(said(2 * place, f"Please remember: {text}", at=9 * place, session_id=f"s{place // 2}"))
        await here.say(said(2 * place + 1, "ok", at=9 * place + 1, role="assistant", session_id=f"s{place // 2}"))
    await here.say(*(said(90 + n, "", at=100, session_id=f"s{n}", type="session_end") for n in range(2)))
    questions = ["Where does my sister live?", "Did I go skiing? And how was the train?", "我妹妹住在哪里？"]
    before = [await here.found(question, explain=True) for question in questions]
    assert [sum(hit.state == SHORT_TERM for hit in hits) for hits in before] == [4, 4, 4]
    assert here.promoted == 2 + 4
    await here.applied()
    after = [await here.found(question, explain=True) for question in questions]
    assert not [hit for hits in after for hit in hits if hit.state == SHORT_TERM]
    assert [[(hit.id, hit.relevance, hit.explain) for hit in hits] for hits in after] == [
        [(hit.id, hit.relevance, hit.explain) for hit in hits] for hits in before
    ]


async def test_what_becomes_a_memory_while_it_is_asked_for_is_found_once(here: Talk) -> None:
    """It was open when its window was read, and has closed, with one more message, and is in the shard since then."""
    await here.say(said(0, f"Please remember: {OSLO}"))
    here.model.gate.clear()
    asking = asyncio.ensure_future(here.found("Where is Oslo?"))
    await until(lambda: here.model.asked)
    await here.say(said(1, "Noted", at=1, role="assistant"), said(2, "and now?", at=2))
    here.model.gate.set()
    await here.applied()
    hits = await asking
    assert [(hit.state, hit.message_ids) for hit in hits] == [("active", ["u-0", "u-1"])]
    assert texts(await here.found("Where is Oslo?"))[0].startswith("Please remember")
    assert [hit.state for hit in await here.found("Where is Oslo?")] == ["active", "short_term"]


@pytest.mark.parametrize("then", ["merged", "archived", "removed"])
async def test_what_became_a_memory_is_not_found_as_an_exchange_whatever_came_of_that(here: Talk, then: str) -> None:
    text = f"Please remember: {OSLO}"
    if then == "merged":
        await here.applied(promotion(text, "older"))
    await here.say(said(0, text), said(1, "", at=5, type="session_end"))
    await here.applied()
    kept = memory_id("u", "u-s", ("u-0",))
    commands: dict[str, list[type[Archive | Remove]]] = {"archived": [Archive], "removed": [Archive, Remove]}
    for kind in commands.get(then, []):
        await here.applied(kind(event_id=uuid.uuid4(), user_id="u", timestamp=START, memory_id=kept))
    hits = await here.found("Where is Oslo?")
    assert [hit.state for hit in hits] == (["active"] if then == "merged" else [])


async def test_what_is_forgotten_is_not_found(here: Talk) -> None:
    """One exchange, by the id that its hit shows; then the user, while a question waits for its vector."""
    await here.say(said(0, OSLO, session_id="a"), said(1, "I drink tea in Oslo", at=1, session_id="b"))
    (first, second) = await here.found("engineer in Oslo")
    await here.applied(Forget(event_id=uuid.uuid4(), user_id="u", timestamp=START + 9_000, memory_id=first.id))
    assert [hit.id for hit in await here.found("engineer in Oslo")] == [second.id]
    here.model.gate.clear()
    asking = asyncio.ensure_future(here.found("another question about Oslo"))
    await until(lambda: any("another" in text for text in here.model.asked))
    await here.applied(ForgetUser(event_id=uuid.uuid4(), user_id="u", timestamp=START + 9_000))
    here.model.gate.set()
    assert await asking == []
    assert await here.found("engineer in Oslo") == []


async def test_short_term_is_a_state_that_is_asked_for_and_left_out(here: Talk) -> None:
    await here.applied(promotion("Oslo is my home", "0"))
    await here.say(said(0, OSLO))

    async def states(**fields: Any) -> set[str]:
        return {hit.state for hit in await here.found("Oslo", **fields)}

    assert await states() == {"active", "short_term"}
    assert await states(short_term=False) == {"active"}
    assert await states(states=frozenset()) == {"short_term"}
    assert await states(states=frozenset({State.COLD})) == {"short_term"}
    assert await states(states=frozenset({State.COLD}), short_term=False) == set()


async def test_filters_number_and_relevance_count_for_exchanges_too(here: Talk) -> None:
    await here.applied(promotion("Oslo in winter", "0", at=START - 9_000))
    await here.say(
        said(0, "Oslo in spring", session_id="a", metadata={"tags": ["trip"]}),
        said(1, "Oslo in autumn", at=3_600, session_id="b"),
        said(2, "something else", at=3_601, session_id="c"),
    )

    async def found(*filters: str, **fields: Any) -> set[str]:
        return set(texts(await here.found("Oslo", filters=Filter.all_of(filters), **fields)))

    assert await found("kind:eq:exchange", min_relevance=0.3) == {
        "Oslo in winter",
        "Oslo in spring",
        "Oslo in autumn",
    }
    assert await found("tags:contains:trip") == {"Oslo in spring"}
    assert await found('session:in:["b","c"]') == {"Oslo in autumn", "something else"}
    assert await found("created_at:gte:2026-01-01T00:30:00Z") == {"Oslo in autumn", "something else"}
    assert await found("importance:gte:80") == {"Oslo in winter"}
    assert await found(min_relevance=1.0) == set()
    assert len(await found(top_k=2)) == 2


async def test_an_exchange_that_is_found_is_no_access(here: Talk) -> None:
    await here.say(said(0, OSLO))
    await here.found(OSLO)
    assert here.worker.recall._accesses.take() == []
    assert labelled(here.worker.metrics.short_term_hits) == {(): 1}


async def test_a_question_does_not_find_itself(here: Talk) -> None:
    """A chat service puts a message into the log before it asks; with its answer it is as good as any exchange."""
    await here.say(said(0, "Where is my bike?"))
    assert await here.found("Where is my bike?") == []
    await here.say(said(1, "In the shed.", at=1, role="assistant"))
    assert texts(await here.found("Where is my bike?")) == ["Where is my bike?\nIn the shed."]
    await here.say(said(2, "My bike is blue", at=2))
    assert "My bike is blue" in texts(await here.found("My bike is blue"))


async def test_nothing_is_embedded_before_somebody_asks_and_nothing_twice(here: Talk) -> None:
    await here.say(*(said(n, f"fact {n}", at=300 * n) for n in range(5)))
    assert here.model.asked == []
    for question in ("first?", "second?"):
        assert len(await here.found(question)) == 5
    assert sorted(here.model.asked) == sorted(["first?", "second?", *(f"fact {n}" for n in range(5))])


async def test_whoever_has_said_thousands_of_things_does_not_wait_for_them(here: Talk) -> None:
    """The newest are embedded, and of the newest five hundred those that have the question's words."""
    sessions, each = 60, 50
    for session in range(sessions):
        at = 1_000 * session
        exchanges = [
            said(1_000 * session + n, f"talk {session} {n}", at=at + n, session_id=f"s{session}") for n in range(each)
        ]
        answers = [
            said(1_000 * session + 500 + n, "ok", at=at + n, role="assistant", session_id=f"s{session}")
            for n in range(each)
        ]
        await here.say(*(record for pair in zip(exchanges, answers, strict=True) for record in pair))
    await here.say(said(999_000, "the blue parrot sings", at=55_000, session_id="parrot"))
    for n in range(NEWEST + 8):
        await here.say(said(999_001 + n, f"newer {n}", at=70_000 + n, session_id=f"n{n}"))
    hits = await here.found("Which parrot sings?")
    assert hits[0].memory == "the blue parrot sings"
    assert NEWEST < len(here.model.asked) <= NEWEST + BY_WORDS + 1
    made = Calls()
    with made.watched(), made.counted():
        await here.found("Which talk was it?")
    assert made.total < 15 * MOST, made.total
    assert len(here.worker.recall._said.by(0, "u")) == MOST


async def test_while_nothing_can_be_embedded_words_find_what_was_said(here: Talk) -> None:
    """Of a question whose vector is kept; what is said since then has none."""
    await here.say(said(0, "I drink tea"))
    assert len(await here.found("Oslo?")) == 1

    async def away(texts: object, of: object, attempt: int, *, urgent: bool) -> Any:
        raise EmbeddingUnavailable("the service is away", passing=False)

    here.model.embed = away  # type: ignore[method-assign]
    await here.say(said(1, OSLO, at=300))
    assert texts(await here.found("Oslo?"))[0] == OSLO


async def test_a_context_shows_nothing_twice(here: Talk) -> None:
    """What its window shows is no hit; what is older than that, and what other sessions hold, is."""
    await here.say(said(0, "my key lies under the green stone", session_id="other"))
    await here.say(*(said(1 + n, f"the key of room {n} is with me", at=300 * n) for n in range(12)))
    asked = ContextQuery("u", "u-s", "Where is the key?", exchanges=10)
    context = await here.worker.service.context(asked)
    shown = {message.message_id for one in context.exchanges for message in one.exchange.messages}
    assert len(shown) == 10
    assert {hit.memory for hit in context.hits} == {
        "my key lies under the green stone",
        "the key of room 0 is with me",
        "the key of room 1 is with me",
    }
    assert all(context.prompt.count(hit.memory) == 1 for hit in context.hits)
    assert all(context.prompt.count(f"room {n} ") == 1 for n in range(12))
    without = await here.worker.service.context(replace(asked, short_term=False))
    assert without.hits == []


async def test_the_prompt_does_not_repeat_the_memory_of_an_exchange_that_it_shows(here: Talk) -> None:
    """It is still among the memories."""
    await here.say(said(0, f"Please remember: {OSLO}"), said(1, "Noted", at=1, role="assistant"), said(2, "so", at=2))
    await here.applied()
    context = await here.worker.service.context(ContextQuery("u", "u-s", "Where is Oslo?"))
    assert [hit.state for hit in context.hits] == ["active"]
    assert context.prompt.count(OSLO) == 1
    assert here.promoted == 1


async def test_over_http_what_was_said_is_found_unless_it_is_left_out(here: Talk) -> None:
    """On both ways in, in either spelling; a state that is named decides by itself."""
    await here.applied(promotion("Oslo is my home", "0"))
    await here.say(said(0, OSLO))

    async with here.http() as http:

        async def states(**fields: Any) -> list[str]:
            answer = await http.post("/v1/search", json={"user_id": "u", "query": "Oslo", **fields})
            return sorted(hit["state"] for hit in answer.raise_for_status().json()["results"])

        assert await states() == ["active", "short_term"]
        assert await states(include_short_term=False) == await states(includeShortTerm=False) == ["active"]
        assert await states(state="short_term", include_short_term=False) == ["short_term"]
        assert await states(state="active") == ["active"]
        assert await states(state="cold") == []
        wrong = await http.post("/v1/search", json={"user_id": "u", "query": "Oslo", "state": "warm"})
        assert (wrong.status_code, "short_term" in wrong.text) == (422, True)
        for wanted, expected in (("true", ["active", "short_term"]), ("false", ["active"])):
            asked = {"user_id": "u", "session_id": "new", "q": "Oslo", "include_short_term": wanted}
            answer = (await http.get("/v1/context", params=asked)).raise_for_status().json()
            assert sorted(hit["state"] for hit in answer["memories"]) == expected


@pytest.mark.parametrize("type_", ["silence", "message", "audio", None, 7])
async def test_a_type_of_the_senders_own_makes_a_message_nothing_else(here: Talk, type_: object) -> None:
    said = {"user_id": "u", "session_id": "s", "role": "user", "content": "I keep bees", "type": type_}
    async with here.http() as http:
        assert (await http.post("/v1/messages", json=said)).status_code == 202
    await here.heard()
    assert [hit.memory for hit in await here.found("bees")] == ["I keep bees"]


async def test_a_message_that_says_that_it_ends_its_session_is_refused(here: Talk) -> None:
    """One of the two would be lost."""
    said = {"user_id": "u", "session_id": "s", "role": "user", "content": "I keep bees", "type": "session_end"}
    async with here.http() as http:
        answer = await http.post("/v1/messages", json=said)
    assert (answer.status_code, "/end ends a session" in answer.text) == (422, True)
    assert here.log.records[here.worker.topics.conversations] == []


@pytest.mark.parametrize("body", [True, False])
async def test_a_session_is_ended_over_http(here: Talk, body: bool) -> None:
    """As by a record of the service's own: what is open closes, and what is undecided is decided on."""
    await here.say(said(0, OSLO, session_id="a/b"))
    named: dict[str, Any] = (
        {"json": {"user_id": "u", "timestamp": START + 5_000}} if body else {"params": {"user_id": "u"}}
    )
    async with here.http() as http:
        answer = await http.post("/v1/sessions/a%2Fb/end", **named, headers=JSON)
        assert answer.status_code == 202
        told = answer.json()
        assert (told["topic"], told["partition"], told["offset"]) == (here.worker.topics.conversations, 0, 1)
        record = here.log.records[told["topic"]][told["offset"]]
        assert record.key == b"u"
        assert orjson.loads(record.value or b"")["event_id"] == told["event_id"]
        await here.heard()
        session = here.worker.intake.windows.session(0, "u", "a/b")
        assert (session.ended, session.open, session.pending) == (True, (), ())
        assert session.last_at == START + (5_000 if body else 0)  # now is the newest event time


@pytest.mark.parametrize(
    "named",
    [{}, {"json": {}}, {"json": {"user_id": "u"}, "params": {"user_id": "v"}}, {"json": {"user_id": "u", "at": 1}}],
)
async def test_whose_session_ends_has_to_be_said(here: Talk, named: dict[str, Any]) -> None:
    async with here.http() as http:
        answer = await http.post("/v1/sessions/s/end", **named, headers=JSON)
    assert answer.status_code == 422
    assert here.log.records[here.worker.topics.conversations] == []
