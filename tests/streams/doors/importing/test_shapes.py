"""Messages of every shape, in each format that has messages of this kind: read as by every other way in."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from schemas.conversations import ChatMessage
from streams.doors.importing.found import Found, Given, LeftOut, Problem, Record
from streams.doors.importing.records import records
from tests.support.making import START
from tests.support.shapes import SHAPES, Refused, Said

_SHOWN = ("user", "assistant")
GIVEN = Given(START + 1_000_000, user="ann", session="s", undated=START)
ANOTHER = {"role": "user", "content": "another"}
FORMATS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "array": lambda message: [ANOTHER, message],
    "object": lambda message: {"id": "c1", "messages": [ANOTHER, message]},
    "our own": lambda message: {"user_id": "ann", "session_id": "s", "timestamp": START, **message},
}


def read(value: Any) -> list[Found]:
    return list(records(io.BufferedReader(io.BytesIO(json.dumps(value).encode())), GIVEN))


def said(found: list[Found]) -> list[tuple[str, str]]:
    values = [orjson.loads(one.value) for one in found if isinstance(one, Record)]
    messages = [ChatMessage.model_validate(value) for value in values if value.get("type") != "session_end"]
    return [(one.role, one.content) for one in messages if one.content != "another"]


@pytest.mark.parametrize("of", FORMATS)
@pytest.mark.parametrize(("message", "expected"), SHAPES, ids=range(len(SHAPES)))
def test_a_message_of_any_shape_is_read(message: dict[str, Any], expected: Said | Refused | None, of: str) -> None:
    found = read(FORMATS[of](message))
    assert said(found) == ([expected] if isinstance(expected, Said) else [])
    assert sum(one.messages for one in found if isinstance(one, LeftOut)) == (expected is None)
    problems = [str(one.why) for one in found if isinstance(one, Problem)]
    assert [expected.why in one for one in problems] == [True] if isinstance(expected, Refused) else not problems


IN_PARTS = [one for one in SHAPES if isinstance(one[0].get("content"), list) and one[0]["role"] in _SHOWN]


@pytest.mark.parametrize(("message", "expected"), IN_PARTS, ids=range(len(IN_PARTS)))
def test_parts_of_a_chatgpt_export_are_read_alike(message: dict[str, Any], expected: Said | Refused | None) -> None:
    node = {
        "id": "n",
        "parent": None,
        "message": {
            "id": "m",
            "author": {"role": message["role"]},
            "content": {"content_type": "text", "parts": message["content"]},
        },
    }
    found = read({"mapping": {"n": node}, "current_node": "n"})
    assert said(found) == ([expected] if isinstance(expected, Said) else [])
    problems = [str(one.why) for one in found if isinstance(one, Problem)]
    assert [expected.why in one for one in problems] == [True] if isinstance(expected, Refused) else not problems
