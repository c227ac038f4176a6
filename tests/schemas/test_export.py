"""The exported JSON Schemas are those of the models."""

from __future__ import annotations

import importlib
from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from schemas.export import EXPORTED, FOLDER, documents
from tests.schemas.test_events import COMMON, EVENTS, ID
from tests.support.making import START

# It publishes no type information.
jsonschema: Any = importlib.import_module("jsonschema")


def test_every_file_equals_its_model() -> None:
    """`python -m schemas.export` has been run since the models changed."""
    assert {path: path.read_bytes() for path in FOLDER.glob("*.json")} == documents()


SAMPLES: dict[str, list[dict[str, Any]]] = {
    "chat-message": [
        {"user_id": "u", "session_id": "s", "role": "user", "content": "hi", "timestamp": START},
        {
            "user_id": "小明",
            "session_id": "s",
            "message_id": "m1",
            "role": "tool",
            "content": "12 °C",
            "timestamp": "2026-01-01T00:00:00Z",
            "emotion": "sad",
            "name": "Ann",
            "agent_id": None,
            "metadata": {"a": [1]},
            "a_field_of_the_service": 1,
        },
    ],
    "session-ended": [{"type": "session_end", "user_id": "u", "session_id": "s", "timestamp": START}],
    "silence": [{"type": "silence", "user_id": "u", "session_id": "s", "timestamp": START}],
    "long-term-event": [COMMON | fields for fields in EVENTS.values()],
    "transition": [
        {
            "memory_id": ID,
            "user_id": "u",
            "from": "active",
            "to": "cold",
            "score": 69.9,
            "at": "2026-01-01T00:00:00.000Z",
            "reason": "decay",
        }
    ],
    "summary-request": [{"run_id": ID, "user_id": "u", "date": "2026-01-01", "reason": "manual", "messages": []}],
    "dead-letter-headers": [
        {
            "source.topic": "t",
            "source.partition": 0,
            "source.offset": 1,
            "error.type": "not_json",
            "error.message": "no",
            "failed.at": "2026-01-01T00:00:00.000Z",
        }
    ],
    "token": [
        {
            "id": "0" * 16,
            "name": "n",
            "sha256": "0" * 64,
            "users": ["u"],
            "scopes": ["read", "admin"],
            "created_at": START,
            "expires_at": START + 1,
        }
    ],
}


def test_every_record_type_is_exported_and_sampled_here() -> None:
    assert SAMPLES.keys() == EXPORTED.keys()


@pytest.mark.parametrize("name", EXPORTED)
def test_schema_and_model_accept_the_same_samples(name: str) -> None:
    """A producer that checks against the file sends what the worker takes."""
    document = orjson.loads((FOLDER / f"{name}.v1.json").read_bytes())
    jsonschema.Draft202012Validator.check_schema(document)
    for sample in SAMPLES[name]:
        jsonschema.validate(sample, document, cls=jsonschema.Draft202012Validator)
        EXPORTED[name].validate_python(sample)


@pytest.mark.parametrize("name", EXPORTED)
def test_schema_and_model_refuse_an_empty_record(name: str) -> None:
    document = orjson.loads((FOLDER / f"{name}.v1.json").read_bytes())
    assert not jsonschema.Draft202012Validator(document).is_valid({})
    with pytest.raises(ValidationError):
        EXPORTED[name].validate_python({})
