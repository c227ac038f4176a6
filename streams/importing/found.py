"""What an ingested file gives, and what is given with it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Self

import orjson

from schemas.errors import BadRecord, SiltstoneError
from schemas.events import LongTermEvent
from schemas.settings import MemorySettings
from streams.importing.formats import NAMES, Format


@dataclass(frozen=True, slots=True)
class Given:
    """What comes with a file: names for what names none, and when its undated messages were said (epoch ms).

    Without `undated` (standard input) that is `now`, and a message of our own format is left to the worker's clock.
    """

    now: int
    user: str | None = None
    session: str | None = None
    undated: int | None = None
    format: Format | None = None
    memory: MemorySettings = field(default_factory=MemorySettings)


@dataclass(frozen=True, slots=True)
class Record:
    """A record to produce, of `at` (epoch ms); the end of a session that the file does not tell is not `in_file`.

    An event of long-term memory is `lasting`; all else is said in a conversation.
    """

    user_id: str
    value: bytes
    at: int
    in_file: bool = True
    lasting: bool = False

    @classmethod
    def of_event(cls, event: LongTermEvent, in_file: bool = True) -> Self:
        """With the fields that were given: an importance that is not, the worker works out."""
        fields = event.model_dump(mode="json", exclude_unset=True, exclude_none=True)
        return cls(
            event.user_id, orjson.dumps({**fields, "type": event.type}), event.timestamp, in_file, lasting=True
        )


@dataclass(frozen=True, slots=True)
class Problem:
    """What could not be used, and where it stands: a number of a line, or in words."""

    line: int
    where: str
    why: BadRecord


@dataclass(frozen=True, slots=True)
class TakenFor:
    """The format was recognised, or given."""

    format: Format


@dataclass(frozen=True, slots=True)
class LeftOut:
    """So many messages that nobody said, or memories that were deleted."""

    messages: int


Found = Record | Problem | TakenFor | LeftOut


class NotReadable(SiltstoneError):
    """The file is of no format that is read, or too large: the text says what to do."""


class NamesNoUser(SiltstoneError):
    """The format has no users: pass `--user`."""

    def __init__(self, of: Format) -> None:
        super().__init__(f"{NAMES[of]} name no user: pass --user")


def digest(*parts: object) -> str:
    """An id that follows from these."""
    joined = "\0".join(str(part) for part in parts)
    return hashlib.blake2b(joined.encode(errors="surrogatepass"), digest_size=16).hexdigest()
