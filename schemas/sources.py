"""Sources: who wrote what a memory is made of.

    user    assistant    tool          who spoke, by role
    user:Ann    tool:search            … and by name, where the message has one
    token:crawler                      the token of the HTTP request, where it had one

A memory has one for each contributor. A record that is written to Kafka directly has no token: a producer with
write access to the topics may write any of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

import orjson
from pydantic import Field

from schemas.topics import SOURCES_HEADER

#: Where messages, notes and memories keep theirs in their metadata. The API accepts it from no client.
SOURCES: Final = "siltstone.sources"
#: Of an exchange of which nothing else is known: no record says it.
USUAL: Final = ("assistant", "user")
#: Of a memory that was made by an explicit request.
ASKED: Final = ("user",)
TOKEN: Final = "token:"
#: Of one memory; of more, these are the first ones in alphabetical order.
MOST: Final = 64

_LONGEST: Final = 300
_FORM: Final = r"^(user|assistant|tool|token)(:.+)?$"

#: One source, or a class of them: `token` is all tokens.
Source = Annotated[str, Field(pattern=_FORM, max_length=_LONGEST)]
#: As events have them.
Sources = Annotated[list[Annotated[str, Field(max_length=_LONGEST)]], Field(max_length=MOST)]


def covers(wanted: str, source: str) -> bool:
    """Whether a source is the wanted one, or of the wanted class.

    >>> covers("tool", "tool:search"), covers("tool:search", "tool"), covers("user", "user2")
    (True, False, False)
    """
    return source == wanted or source.startswith(f"{wanted}:")


def any_covered(wanted: Iterable[str], sources: Iterable[str]) -> bool:
    """Whether one of the sources is one of those that are wanted."""
    given = tuple(sources)
    return any(covers(one, source) for one in wanted for source in given)


def sources_in(meta: Mapping[str, Any], kind: str) -> list[str]:
    """Those of a memory, by its metadata; where these say nothing, those that its kind usually has."""
    return list(meta.get(SOURCES) or (ASKED if kind in ("remember", "item") else USUAL))


def together(*several: Iterable[str]) -> list[str]:
    """Each once, in alphabetical order."""
    return sorted({source for some in several for source in some})[:MOST]


def meant(found: object) -> list[str]:
    """Those in what says them outside of events, where anybody may have written anything: nonsense is passed over.

    >>> meant(["token:app", "martian", 7]), meant("user")
    (['token:app'], [])
    """
    if not isinstance(found, list):
        return []
    return [one for one in found if isinstance(one, str) and len(one) <= _LONGEST and re.match(_FORM, one)][:MOST]


def sources_beside(headers: Iterable[tuple[str, bytes | None]]) -> list[str]:
    """Those in a promotion's headers; none where there are none, or nonsense: what was said is kept all the same."""
    for name, value in headers:
        if name == SOURCES_HEADER:
            try:
                return meant(orjson.loads(value or b""))
            except orjson.JSONDecodeError:
                return []
    return []
