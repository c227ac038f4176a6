"""Requests that are read without a model are read as the model reads them."""

from __future__ import annotations

import uuid
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from schemas.errors import BadRecord
from schemas.events import SummaryRequest
from schemas.exchanges import Message
from schemas.fields import MAX_CONTENT_BYTES
from schemas.summary_requests import heading_of, plain_heading, request_in, said_in
from streams.summaries.requests import decode
from tests.support.examples import examples
from tests.support.making import START

RUN = uuid.UUID(int=7)


def raw(message: dict[str, Any] | None = None, **fields: Any) -> bytes:
    """A request with one message; what is None is left out."""
    said = {
        "user_id": "u",
        "session_id": "s",
        "message_id": "m1",
        "role": "user",
        "content": "hello",
        "timestamp": START,
        "name": None,
    } | (message or {})
    whole = {
        "run_id": str(RUN),
        "user_id": "u",
        "date": "2026-01-01",
        "reason": "count",
        "messages": [said],
        **fields,
    }
    return orjson.dumps({name: value for name, value in whole.items() if value != "left out"})


def judged(content: bytes) -> Any:
    """What the model makes of it: heading and messages, or its refusal."""
    try:
        request = request_in(content)
        return heading_of(request), [(one.session_id, Message.of(one)) for one in request.messages]
    except (ValidationError, ValueError):
        return None


def test_our_own_form_is_read_without_a_model() -> None:
    heading = plain_heading(raw())
    assert heading is not None
    assert (heading, [tuple(one) for one in said_in(raw())]) == judged(raw())


ODD: list[dict[str, Any]] = [
    {"message": {"emotion": "sad"}},
    {"message": {"metadata": {"a": 1}}},
    {"message": {"message_id": None}},
    {"message": {"timestamp": "2026-01-01T00:00:00Z"}},
    {"message": {"timestamp": 5}},
    {"message": {"timestamp": True}},
    {"message": {"timestamp": START + 0.5}},
    {"message": {"role": "nobody"}},
    {"message": {"role": None}},
    {"message": {"content": 7}},
    {"message": {"content": "字" * (MAX_CONTENT_BYTES // 4)}},
    {"message": {"content": "x" * MAX_CONTENT_BYTES}},
    {"message": {"content": "字" * (MAX_CONTENT_BYTES // 2)}},
    {"message": {"session_id": ""}},
    {"message": {"user_id": "x" * 257}},
    {"message": {"name": "x" * 257}},
    {"message": {"extra": 1}},
    {"date": "2026-02-30"},
    {"date": "20260101"},
    {"date": "2026-W01-1"},
    {"date": "٢٠٢٦-01-01"},
    {"date": None},
    {"reason": "whim"},
    {"run_id": "mine"},
    {"run_id": RUN.hex},
    {"run_id": f"urn:uuid:{RUN}"},
    {"user_id": ""},
    {"user_id": "😀" * 256},
    {"user_id": "😀" * 257},
    {"messages": []},
    {"messages": None},
    {"messages": "left out"},
    {"note": 1},
]


@pytest.mark.parametrize("fields", ODD)
def test_what_the_model_takes_and_refuses_is_taken_and_refused(fields: dict[str, Any]) -> None:
    content = raw(**fields)
    expected = judged(content)
    record = SimpleNamespace(value=content)
    if expected is None:
        assert plain_heading(content) is None
        with pytest.raises(BadRecord):
            decode(record)
    else:
        assert (decode(record), [tuple(one) for one in said_in(content)]) == expected


@examples(200)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(START - 9, START + 9) | st.text(max_size=8),
        lambda within: st.lists(within, max_size=3),
        max_leaves=4,
    ),
    st.sampled_from(["run_id", "user_id", "date", "reason", "messages", "content", "timestamp", "name", "role", "x"]),
)
def test_whatever_stands_in_a_field_the_model_decides(value: Any, field: str) -> None:
    inner = field in ("content", "timestamp", "name", "role", "x")
    content = raw({field: value}) if inner else raw(**{field: value})
    expected, heading = judged(content), plain_heading(content)
    assert heading is None or (heading, [tuple(one) for one in said_in(content)]) == expected


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"run_id": "\xff"}', raw()[:-1], raw().replace(b"hello", b"\\udx")]
)
def test_what_is_no_request_is_refused(content: bytes) -> None:
    assert plain_heading(content) is None
    with pytest.raises(BadRecord):
        decode(SimpleNamespace(value=content))


def test_a_request_is_a_summary_request() -> None:
    assert isinstance(request_in(raw()), SummaryRequest)
