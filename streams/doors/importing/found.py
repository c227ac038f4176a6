"""The results of reading a file for an import (records, problems, left-out entries), and the options of an import."""

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
"""The maximum number of speakers' names that an error lists."""


@dataclass(frozen=True, slots=True)
class Given:
    """The options of an import.

    `user` and `session` are used for entries that name no user or session. Entries without a time get the time
    `undated` (epoch ms). If `undated` is None (standard input), they get `now`, but messages of our own format stay
    without a time.

    `speaker` is the name of the user in a chat between people. `zone` is the time zone of times without a zone.
    `format` is None if it has to be recognised. If `dry`, the file is only inspected, so no error is raised if it is
    unknown which speaker is the user.
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
    """A record to produce to Kafka. `at` is its time in epoch ms.

    `in_file` is True if the record is counted as an entry of the file. It is False for a session end that the import
    adds, and for an event about a memory that another record creates. `lasting` is True for a record of the topic
    `long-term`, and False for a record of the topic `conversations`.
    """

    user_id: str
    value: bytes
    at: int
    in_file: bool = True
    lasting: bool = False

    @classmethod
    def of_event(cls, event: LongTermEvent, in_file: bool = True) -> Self:
        """Build a record with only those fields of the event that were set.

        For example, a worker computes the importance only if the field is missing.
        """
        fields = event.model_dump(mode="json", exclude_unset=True, exclude_none=True)
        return cls(
            event.user_id, orjson.dumps({**fields, "type": event.type}), event.timestamp, in_file, lasting=True
        )


@dataclass(frozen=True, slots=True)
class Problem:
    """An entry that could not be used, and the reason.

    `where` is a text with its place in the file. `line` is its line number, or 0 if it has no line of its own.
    """

    line: int
    where: str
    why: BadRecord


@dataclass(frozen=True, slots=True)
class TakenFor:
    """The format in which the file is read: either the recognised format, or the format that the user named."""

    format: Format


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A number of entries that are not imported: messages that belong to no conversation, or deleted memories."""

    messages: int


Found = Record | Problem | TakenFor | LeftOut


class NotReadable(SiltstoneError):
    """The file cannot be imported, for example because its format is unknown. The text says what to do."""


class NamesNoUser(SiltstoneError):
    """The entries of this format name no user. Pass `--user`."""

    def __init__(self, of: Format) -> None:
        super().__init__(f"no user is named in {NAMES[of]}: pass --user")


class NamesNoSpeaker(SiltstoneError):
    """The import cannot decide which speaker of a chat between people is the user. Pass `--speaker`."""

    def __init__(self, names: Sequence[str], given: Given) -> None:
        who = ", ".join(name[:40] for name in names[:MOST_NAMES]) + (", …" if len(names) > MOST_NAMES else "")
        wrong = f"none of them has the name {given.speaker!r}" if given.speaker else f"which of them is {given.user}?"
        super().__init__(f"it is a chat between {who}: {wrong}: pass --speaker with one of these names")


def digest(*parts: object) -> str:
    """Return an id that is derived from the parts. Equal parts always give the same id."""
    joined = "\0".join(str(part) for part in parts)
    return hashlib.blake2b(joined.encode(errors="surrogatepass"), digest_size=16).hexdigest()
