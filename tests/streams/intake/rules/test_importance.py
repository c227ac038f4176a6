"""What a text is worth that is stored without an importance."""

from __future__ import annotations

import uuid
from types import SimpleNamespace

import orjson
import pytest

from schemas.events import Forget, Remember
from schemas.settings import MemorySettings
from streams.intake.rules.importance import Importance
from streams.memory.agent import decoder
from tests.support.making import START

IMPORTANCE = Importance(MemorySettings())


def remember(text: str, **fields: object) -> Remember:
    given = {"event_id": uuid.uuid4(), "user_id": "u", "timestamp": START, "text": text, "session_id": "s", **fields}
    return Remember.model_validate(given)


@pytest.mark.parametrize("text", ["hello there", "你好", "What is the capital of France?", "谢谢"])
def test_small_talk_is_worth_the_least(text: str) -> None:
    """A memory that is asked for is active all the same; what is for a while ends with its session."""
    assert IMPORTANCE.of(text, short_term=False) == 70
    assert IMPORTANCE.of(text, short_term=True) == 50


@pytest.mark.parametrize(
    "text",
    [
        "我叫小明，对花生过敏",
        "I'm allergic to peanuts",
        "My daughter Sofia starts school on August 18",
        "我下周搬到杭州",
    ],
)
def test_what_is_personal_outlives_its_session(text: str) -> None:
    for short_term in (True, False):
        assert 75 < IMPORTANCE.of(text, short_term=short_term) <= 100


def test_what_says_more_is_worth_more() -> None:
    texts = ("thanks!", "I had lunch with a colleague", "My name is Anna, I live in Berlin and I'm allergic to nuts")
    worth = [IMPORTANCE.of(text, short_term=False) for text in texts]
    assert worth == sorted(worth)
    assert len(set(worth)) == 3


@pytest.mark.parametrize("text", ["请记住我的车位是 B12", "Remember that the code is 4711"])
def test_what_asks_to_be_remembered_is_worth_the_most(text: str) -> None:
    assert IMPORTANCE.of(text, short_term=True) == 100


def test_an_importance_that_is_given_stays() -> None:
    for importance in (0.0, 50.0, 100.0):
        event = remember("hello there", importance=importance)
        assert IMPORTANCE.weighed(event) is event
    other = Forget(event_id=uuid.uuid4(), user_id="u", timestamp=START, memory_id=uuid.uuid4())
    assert IMPORTANCE.weighed(other) is other


def test_an_event_of_a_service_gets_it_when_it_is_read() -> None:
    """By the settings, as one that came over HTTP."""
    read = decoder(MemorySettings())
    fields = {
        "type": "remember",
        "event_id": str(uuid.uuid4()),
        "user_id": "u",
        "kind": "short_term",
        "session_id": "s",
    }
    event = read(SimpleNamespace(value=orjson.dumps({**fields, "text": "我对花生过敏"}), timestamp=START))
    assert isinstance(event, Remember)
    assert event.importance == IMPORTANCE.of("我对花生过敏", short_term=True) > 70
