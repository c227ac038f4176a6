"""Sources: the authors of the content of a memory.

    user    assistant    tool          the role of a speaker
    user:Ann    tool:search            the role and the name of a speaker, if the message has a name
    token:crawler                      the token of the HTTP request, if the request had one

A memory has one source for each contributor. A record that a producer writes directly to Kafka has no token, but a
producer with write access to the topics can write any source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

import orjson
from pydantic import Field

from schemas.topics import SOURCES_HEADER

#: Key of the sources in the metadata of messages, notes and memories. The API does not accept it from clients.
SOURCES: Final = "siltstone.sources"
#: The sources of an ordinary exchange. Records do not list them, because most exchanges have only these.
USUAL: Final = ("assistant", "user")
#: Sources of a memory that was made by an explicit request.
ASKED: Final = ("user",)
TOKEN: Final = "token:"
#: The maximum number of sources of a memory. If it has more, the first in alphabetical order are kept.
MOST: Final = 64

_LONGEST: Final = 300
_FORM: Final = r"^(user|assistant|tool|token)(:.+)?$"

#: One source, or a class of sources. For example, `token` stands for all tokens.
Source = Annotated[str, Field(pattern=_FORM, max_length=_LONGEST)]
#: The list of sources in an event.
Sources = Annotated[list[Annotated[str, Field(max_length=_LONGEST)]], Field(max_length=MOST)]


def covers(wanted: str, source: str) -> bool:
    """True if `source` is the wanted source, or is of the wanted class.

    >>> covers("tool", "tool:search"), covers("tool:search", "tool"), covers("user", "user2")
    (True, False, False)
    """
    return source == wanted or source.startswith(f"{wanted}:")


def any_covered(wanted: Iterable[str], sources: Iterable[str]) -> bool:
    """True if at least one of `sources` is a wanted source, or is of a wanted class of sources."""
    given = tuple(sources)
    return any(covers(one, source) for one in wanted for source in given)


def sources_in(meta: Mapping[str, Any], kind: str) -> list[str]:
    """Return the sources in a memory's metadata. If there are none, return the usual sources of the memory's kind."""
    return list(meta.get(SOURCES) or (ASKED if kind in ("remember", "item") else USUAL))


def speakers_in(meta: Mapping[str, Any]) -> list[str]:
    """Return the names of the speakers in a memory's metadata, which may be anything: a client may have written it.

    >>> speakers_in({"speakers": ["Ann"]}), speakers_in({"speakers": 5}), speakers_in({"speakers": [["Ann"]]})
    (['Ann'], [], [])
    """
    found = meta.get("speakers")
    return found if isinstance(found, list) and all(isinstance(one, str) for one in found) else []


def together(*several: Iterable[str]) -> list[str]:
    """Return the sources of several lists, each source once, in alphabetical order, and at most `MOST` of them."""
    return sorted({source for some in several for source in some})[:MOST]


def meant(found: object) -> list[str]:
    """Return the valid sources in a value that may be anything, because a client may have written it.

    >>> meant(["token:app", "martian", 7]), meant("user")
    (['token:app'], [])
    """
    if not isinstance(found, list):
        return []
    return [one for one in found if isinstance(one, str) and len(one) <= _LONGEST and re.match(_FORM, one)][:MOST]


def sources_beside(headers: Iterable[tuple[str, bytes | None]]) -> list[str]:
    """Return the valid sources in the headers of a promotion's record. Invalid sources are ignored."""
    for name, value in headers:
        if name == SOURCES_HEADER:
            try:
                return meant(orjson.loads(value or b""))
            except orjson.JSONDecodeError:
                return []
    return []
