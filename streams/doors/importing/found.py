"""Results of reading a file for import, and the options of the import."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import Final, Self

import orjson

from schemas.errors import BadRecord, SiltstoneError
from schemas.events import LongTermEvent
from schemas.settings import MemorySettings
from streams.doors.importing.formats import NAMES, Format

MOST_NAMES: Final = 12
"""The most names that an error lists."""


@dataclass(frozen=True, slots=True)
class Given:
    """Options of an import: user and session for entries that name none, and the time of undated messages (epoch ms).

    Without `undated` (standard input) they get `now`; those of our own format are left to the worker's clock. In a
    chat between people `speaker` is the user; `zone` is for times without one. `dry`: the file is only inspected, and
    need not say which speaker is the user.
    """

    now: int
    user: str | None = None
    session: str | None = None
    undated: int | None = None
    format: Format | None = None
    memory: MemorySettings = field(default_factory=MemorySettings)
    speaker: str | None = None
    zone: tzinfo = UTC
    dry: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """A record to produce, dated `at` (epoch ms). A session end that the import adds is not `in_file`.

    Events of long-term memory are `lasting`; all others belong to a conversation.
    """

    user_id: str
    value: bytes
    at: int
    in_file: bool = True
    lasting: bool = False

    @classmethod
    def of_event(cls, event: LongTermEvent, in_file: bool = True) -> Self:
        """Keep only the fields that were given: the worker scores an event without importance."""
        fields = event.model_dump(mode="json", exclude_unset=True, exclude_none=True)
        return cls(
            event.user_id, orjson.dumps({**fields, "type": event.type}), event.timestamp, in_file, lasting=True
        )


@dataclass(frozen=True, slots=True)
class Problem:
    """An entry that could not be used, with its line number, and its place in words."""

    line: int
    where: str
    why: BadRecord


@dataclass(frozen=True, slots=True)
class TakenFor:
    """The format that was recognised, or given."""

    format: Format


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The number of messages left out as not part of the conversation, or of memories left out as deleted."""

    messages: int


Found = Record | Problem | TakenFor | LeftOut


class NotReadable(SiltstoneError):
    """The file's format is unknown, or it is too large: the text says what to do."""


class NamesNoUser(SiltstoneError):
    """The format has no users: pass `--user`."""

    def __init__(self, of: Format) -> None:
        super().__init__(f"no user is named in {NAMES[of]}: pass --user")


class NamesNoSpeaker(SiltstoneError):
    """The user's name in a chat of several people is unknown: pass `--speaker`."""

    def __init__(self, names: Sequence[str], given: Given) -> None:
        who = ", ".join(name[:40] for name in names[:MOST_NAMES]) + (", …" if len(names) > MOST_NAMES else "")
        wrong = f"none of them has the name {given.speaker!r}" if given.speaker else f"which of them is {given.user}?"
        super().__init__(f"it is a chat between {who}: {wrong}: pass --speaker with one of these names")


def digest(*parts: object) -> str:
    """An id derived from these parts."""
    joined = "\0".join(str(part) for part in parts)
    return hashlib.blake2b(joined.encode(errors="surrogatepass"), digest_size=16).hexdigest()
