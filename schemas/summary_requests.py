"""Decodes the records of the topic `summary-requests`. A request in our own form needs no pydantic model.

All other requests are decoded by the model `SummaryRequest`. For a request in our own form, the model would give the
same result, but more slowly.
"""

from __future__ import annotations

import uuid
from datetime import date
from typing import Annotated, Final, Literal, NamedTuple

import msgspec

from schemas.conversations import Role
from schemas.events import SummaryRequest
from schemas.exchanges import Message
from schemas.fields import MAX_CONTENT_BYTES
from schemas.halves import read_json
from schemas.ids import MAX_ID_CHARS
from schemas.times import EARLIEST_MS, LATEST_MS

Reason = Literal["count", "manual", "day_end"]

_Id = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID_CHARS)]


class Said(NamedTuple):
    """A message in a summary request, and the id of its session."""

    session_id: str
    message: Message


class _PlainMessage(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    user_id: _Id
    session_id: _Id
    message_id: _Id
    role: Role
    content: Annotated[str, msgspec.Meta(max_length=MAX_CONTENT_BYTES // 4)]
    timestamp: Annotated[int, msgspec.Meta(ge=EARLIEST_MS, lt=LATEST_MS)]
    name: Annotated[str, msgspec.Meta(max_length=MAX_ID_CHARS)] | None = None


class _PlainRequest(msgspec.Struct, forbid_unknown_fields=True):
    run_id: uuid.UUID
    user_id: _Id
    date: date
    reason: Reason
    messages: list[_PlainMessage]


class Heading(NamedTuple):
    """A summary request without its messages. `newest` is the time (epoch ms) of the newest message, or 0."""

    run_id: uuid.UUID
    user_id: str
    day: date
    reason: Reason
    newest: int


_plain: Final = msgspec.json.Decoder(_PlainRequest)


def plain_heading(raw: bytes) -> Heading | None:
    """Return the heading of a summary request in our own form, or None if the bytes have another form."""
    try:
        read = _plain.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    newest = max((message.timestamp for message in read.messages), default=0)
    return Heading(read.run_id, read.user_id, read.date, read.reason, newest)


def heading_of(request: SummaryRequest) -> Heading:
    """Return the heading of a summary request. Raises `ValueError` if the calendar has no such date."""
    newest = max((message.timestamp for message in request.messages), default=0)
    return Heading(request.run_id, request.user_id, date.fromisoformat(request.date), request.reason, newest)


def request_in(raw: bytes) -> SummaryRequest:
    """Decode a summary request. Raises pydantic's `ValidationError`, or `ValueError` if the bytes are not JSON."""
    return SummaryRequest.model_validate(read_json(raw))


def said_in(raw: bytes) -> list[Said]:
    """Return the messages of a summary request, in the request's order. Raises the errors of `request_in`."""
    try:
        read = _plain.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return [Said(message.session_id, Message.of(message)) for message in request_in(raw).messages]
    return [
        Said(one.session_id, Message(one.message_id, one.role, one.content, one.timestamp, None, one.name))
        for one in read.messages
    ]
