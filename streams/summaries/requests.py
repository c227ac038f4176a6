"""Encodes requests for summaries as records of `summary-requests`, and decodes these records."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any, Final

import msgspec
from pydantic import ValidationError

from schemas.conversations import Role
from schemas.errors import BadRecord
from schemas.events import SummaryRequest
from schemas.exchanges import Message
from schemas.ids import SILTSTONE
from schemas.record_values import invalid, json_object
from schemas.sessions import Session
from schemas.summary_requests import Heading, Reason, heading_of, plain_heading
from schemas.topic_specs import MAX_VALUE_BYTES
from streams.intake.rules.summary_triggers import SummaryWanted

#: The maximum number of characters of all messages of a request together. If a day has more, each message is cut to
#: an equal share of this number.
REQUEST_CHARS = 1_000_000
#: The maximum size of a request's record, in bytes. It leaves room for the row in which a failed request is stored.
#: If the record is longer, messages are cut to half their length, several times if needed. When they are as short as
#: `LEAST_CHARS`, the older half of the messages is left out.
REQUEST_BYTES = MAX_VALUE_BYTES - 1024 * 1024
LEAST_CHARS = 256


def decode(record: Any) -> Heading:
    """Decode the heading of a `summary-requests` record. Raises `BadRecord`."""
    raw = record.value
    if raw is not None and len(raw) <= MAX_VALUE_BYTES and (heading := plain_heading(raw)) is not None:
        return heading
    try:
        return heading_of(SummaryRequest.model_validate(json_object(raw)))
    except ValidationError as exc:
        raise invalid(exc) from exc
    except ValueError as exc:
        raise BadRecord("invalid", f"date: {exc}") from exc


def request_of(session: Session, wanted: SummaryWanted, others: Iterable[tuple[str, Message]] = ()) -> bytes:
    """Return the record of a request for a session's summary. The same summary always has the same run id.

    `others` are messages of the user's other sessions: (session id, message).
    """
    basis = f"{session.user_id}/{session.session_id}/{wanted.reason}/{wanted.day}/{wanted.by}"
    said = [*((session.session_id, message) for message in wanted.messages), *others]
    run_id = uuid.uuid5(SILTSTONE, f"summary/{basis}")
    return _record(run_id, session.user_id, wanted.day, wanted.reason, said)


def summary_request(
    run_id: uuid.UUID, user_id: str, day: date, reason: Reason, said: Sequence[tuple[str, Message]]
) -> SummaryRequest:
    """Return a request with the messages `said`: (session id, message). If the day is too long, messages are cut."""
    return SummaryRequest.model_validate_json(_record(run_id, user_id, day, reason, said))


class _Said(msgspec.Struct, gc=False):
    """A message of a request. The fields are in the order in which the record has them."""

    user_id: str
    session_id: str
    message_id: str
    role: Role
    content: str
    timestamp: int
    name: str | None


class _Request(msgspec.Struct, gc=False):
    run_id: uuid.UUID
    user_id: str
    date: str
    reason: Reason
    messages: list[_Said]


_encode: Final = msgspec.json.Encoder().encode


def _record(run_id: uuid.UUID, user_id: str, day: date, reason: Reason, said: Sequence[tuple[str, Message]]) -> bytes:
    """Encode a record of at most `REQUEST_BYTES`.

    Pydantic models would be too slow here, because every message of a conversation is copied into a request.
    """
    if sum([len(message.content) for _, message in said]) > REQUEST_CHARS:
        each = REQUEST_CHARS // len(said)
    else:
        each = REQUEST_CHARS
    in_order = said if _in_order(said) else sorted(said, key=_time)
    while True:
        messages = [
            _Said(
                user_id,
                session_id,
                message.message_id,
                message.role,
                message.content[:each],
                message.timestamp,
                message.name,
            )
            for session_id, message in in_order
        ]
        record = _encode(_Request(run_id, user_id, day.isoformat(), reason, messages))
        if len(record) <= REQUEST_BYTES:
            return record
        # Characters that JSON escapes, long ids or many messages make the record too long. A broker would refuse it.
        if each > LEAST_CHARS:
            each = max(LEAST_CHARS, min(each, max(len(one.content) for one in messages)) // 2)
        else:
            in_order = in_order[len(in_order) // 2 :]


def _in_order(said: Sequence[tuple[str, Message]]) -> bool:
    latest = 0
    for _, message in said:
        if message.timestamp < latest:
            return False
        latest = message.timestamp
    return True


def _time(said: tuple[str, Message]) -> int:
    return said[1].timestamp
