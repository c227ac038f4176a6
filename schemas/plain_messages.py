"""A fast decoder for plain chat messages on `conversations`, without a pydantic model.

Nearly every record is a plain message: an object that has only our own fields. msgspec decodes it in a fifth of the
time that orjson and pydantic take. This decoder rejects all other records, and the model `ChatMessage` then reads
them. It rejects records with aliases, unknown fields or metadata, records without a time, contents that change when
they are read, and invalid records. For each accepted record, the decoder returns the same message as `ChatMessage`. A
property test compares the two.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from schemas.conversations import Role
from schemas.exchanges import Message
from schemas.fields import MAX_CONTENT_BYTES
from schemas.ids import MAX_ID_CHARS, id_of_content
from schemas.times import parse_timestamp

#: The maximum size of a record for this decoder. `ChatMessage` reads larger records, and checks the limits.
MAX_PLAIN_BYTES = 8 * MAX_CONTENT_BYTES

#: The first characters of contents that this decoder rejects, because the content may have no words, or thoughts
#: before the answer. (Contents with citation marks are rejected because of `\ue200` or `†`.)
_NOT_PLAIN: Final = frozenset({"", "<", *(char for char in map(chr, range(0x3001)) if char.isspace())})

_Id = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID_CHARS)]
_Label = Annotated[str, msgspec.Meta(max_length=MAX_ID_CHARS)]
#: A text of at most this many characters never exceeds `MAX_CONTENT_BYTES`, because UTF-8 takes at most four bytes
#: for each character.
_Content = Annotated[str, msgspec.Meta(max_length=MAX_CONTENT_BYTES // 4)]


class _Plain(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    user_id: _Id
    session_id: _Id
    role: Role
    content: _Content
    timestamp: str | int
    message_id: _Id | None = None
    emotion: _Label | None = None
    name: _Label | None = None
    agent_id: _Label | None = None


_decode = msgspec.json.Decoder(_Plain).decode


def plain_message(raw: bytes | None) -> tuple[str, str, Message] | None:
    """Return the user id, the session id and the message in a record's value.

    Return None if the value is not a plain message, so that the model `ChatMessage` must read it.
    """
    if raw is None or len(raw) > MAX_PLAIN_BYTES:
        return None
    try:
        plain = _decode(raw)
        at = parse_timestamp(plain.timestamp)
    except (msgspec.MsgspecError, ValueError):  # invalid UTF-8 is a ValueError, too
        return None
    session_id, role, content = plain.session_id, plain.role, plain.content
    if content[:1] in _NOT_PLAIN or "\ue200" in content or "†" in content:
        return None
    identity = plain.message_id or id_of_content(session_id, role, at, content)
    return (
        plain.user_id,
        session_id,
        Message(identity, role, content, at, plain.emotion, plain.name, plain.agent_id),
    )
