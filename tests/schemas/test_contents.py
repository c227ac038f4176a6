"""What of a message's content was said. Shapes of messages are in tests/support/shapes.py."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.contents import said, words_of
from schemas.errors import BadRecord, NothingSaid
from schemas.exchanges import Message
from schemas.halves import read_json, without_halves
from streams.intake.agent import session_record
from tests.support.examples import examples
from tests.support.making import START
from tests.support.shapes import NOTHING, SHAPES, Refused, Said


@pytest.mark.parametrize(("message", "expected"), SHAPES, ids=range(len(SHAPES)))
def test_a_record_of_any_shape_is_read(message: dict[str, Any], expected: Said | Refused | None) -> None:
    fields = {"user_id": "u", "session_id": "s", "timestamp": START, **message}
    record = SimpleNamespace(value=json.dumps(fields).encode(), timestamp=START)
    if isinstance(expected, Said):
        read = session_record(record).told
        assert isinstance(read, Message)
        assert (read.role, read.content) == expected
        return
    with pytest.raises(BadRecord) as raised:
        session_record(record)
    assert isinstance(raised.value, NothingSaid) == (expected is NOTHING)
    if isinstance(expected, Refused):
        assert expected.why in str(raised.value)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<THINK>a</THINK>Tea", "Tea"),
        ("<think>a</think><think>b", ""),
        ("<|channel|>commentary to=functions.get<|message|>{}<|call|>", ""),
        ("<|start|>assistant<|channel|>final<|message|>Tea.<|end|>", "Tea."),
        ("<|start|>assistant<|message|>Tea.<|end|>", "Tea."),
        ("<|im_start|>assistant", "<|im_start|>assistant"),
        ("<think >a</think>Tea", "<think >a</think>Tea"),
    ],
)
def test_thoughts_of_an_assistant_are_not_said(text: str, answer: str) -> None:
    assert said(text, "assistant") == answer
    assert said(text, "user") == text, "a user may write about tags"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\ue200navlist\ue202News\ue202turn0news1\ue201Tea", "Tea"),
        ("\ue200entity\ue202no json\ue201Tea", "Tea"),
        ("half \ue200cite\ue202turn", "half citeturn"),
        ("It says so【4:0†source】 and more【12†report.pdf】.", "It says so and more."),
        ("x†y", "x†y"),
        ("👍", "👍"),
    ],
)
def test_marks_of_citations_are_no_words(text: str, words: str) -> None:
    assert said(text, "assistant") == words
    assert words_of([text], "user") == words


@given(
    st.text(
        alphabet=st.characters(exclude_categories=["Nd"]) | st.sampled_from("<>\ue200\ue201\ue202\ud800†【】"),
        max_size=80,
    )
)
@examples(300)
def test_what_is_read_twice_is_the_same(text: str) -> None:
    once = said(text, "assistant")
    assert said(once, "assistant") == once
    assert once.encode().decode() == once, "it can be written"


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "text", "value", "thought", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(ANYTHING, st.sampled_from(["user", "assistant"]))
@examples(1_000, few=200)
def test_any_content_has_words_or_is_refused(content: Any, role: str) -> None:
    """Nothing else comes of it: what a decoder raises besides would stop a worker."""
    try:
        words = words_of(content, role)
    except ValueError:
        return
    assert isinstance(words, str)


@given(st.text(alphabet=st.characters() | st.sampled_from("\ud83d\ude00\ud800"), max_size=20))
@examples(300)
def test_halves_become_one_character_each_and_pairs_what_they_are(text: str) -> None:
    whole = without_halves(text)
    units = text.encode("utf-16-le", "surrogatepass")
    assert len(whole.encode("utf-16-le")) == len(units)
    assert whole == units.decode("utf-16-le", "replace")
    assert read_json(json.dumps([text]).encode()) == [whole]


@pytest.mark.parametrize(
    "raw", [b"", b"{", b'"\\ud83d', b'[NaN, "\\ud83d"]', b"\xff", b'"\xed\xa0\xbd"', b"[" * 9000]
)
def test_what_is_no_json_for_another_reason_stays_none(raw: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        read_json(raw)
