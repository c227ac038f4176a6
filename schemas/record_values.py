"""Decodes and validates the values of Kafka records. If a value cannot be used, the raised error has the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from schemas.conversations import ChatMessage, ConversationRecord, SessionEnded, Silence, model_of
from schemas.errors import BadRecord, NothingSaid
from schemas.halves import read_json
from schemas.topic_specs import MAX_VALUE_BYTES

T = TypeVar("T", bound=BaseModel)

#: The maximum number of fields of a record. Each field is validated separately, so a record with more fields would
#: delay other records.
MAX_FIELDS = 10_000
REASON_CHARS = 500


def json_object(raw: bytes | None) -> dict[str, Any]:
    """Return the JSON object in a record's value. Raises `BadRecord` with a reason that a person understands."""
    if raw is None:
        raise BadRecord("null_value", "the record has no value (null)")
    if len(raw) > MAX_VALUE_BYTES:
        raise BadRecord("too_large", f"the value has {len(raw)} bytes: at most {MAX_VALUE_BYTES} are read")
    try:
        value = read_json(raw)
    except orjson.JSONDecodeError as exc:
        try:
            raw.decode()
        except UnicodeDecodeError as not_text:
            raise BadRecord(
                "not_utf8", f"the value is not UTF-8: {not_text.reason} at byte {not_text.start}"
            ) from exc
        raise BadRecord("not_json", f"the value is not JSON: {exc.msg} (character {exc.pos})") from exc
    if not isinstance(value, dict):
        raise BadRecord("not_an_object", f"the value is a JSON {type(value).__name__}, not an object")
    if len(value) > MAX_FIELDS:
        raise BadRecord("invalid_fields", f"the object has {len(value)} fields: at most {MAX_FIELDS} are read")
    return value


def invalid(exc: ValidationError) -> BadRecord:
    """Return a `BadRecord` that names the fields with invalid values, and the fault of each."""
    problems = [
        f"{'.'.join(str(part) for part in error['loc']) or 'record'}: {error['msg'][:REASON_CHARS]}"
        for error in exc.errors(include_url=False, include_context=False, include_input=False)
    ]
    return BadRecord("invalid_fields", "; ".join(problems))


def conversation_record(fields: Mapping[str, Any]) -> ConversationRecord:
    """Return the record of `conversations` that has these fields: a message, a session's end, or a silence record.

    Raises `BadRecord` if the fields are invalid, and `NothingSaid` if a message has no words.
    """
    if model_of(fields) is Silence:
        return _read(Silence, fields)
    return message_or_end(fields)


def message_or_end(fields: Mapping[str, Any]) -> ChatMessage | SessionEnded:
    """Return the chat message, or the end of a session, that has these fields.

    Raises `BadRecord` if the fields are invalid, and `NothingSaid` if a message has no words.
    """
    if model_of(fields) is SessionEnded:
        return _read(SessionEnded, fields)
    message = _read(ChatMessage, fields)
    if message.says_nothing:
        raise NothingSaid
    return message


def _read(model: type[T], fields: Mapping[str, Any]) -> T:
    try:
        return model.model_validate(fields)
    except ValidationError as exc:
        raise invalid(exc) from exc
