"""What counts as a hit: a message, an exchange or a session. Figures of different units cannot be compared.

- `message`: each message has a place of its own; those of an exchange follow each other in the order of the exchange.
- `exchange`: a memory is one place, and holds all messages of its exchange.
- `session`: a session is one place, that of its best exchange, and holds all messages of the session.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, get_args

from benchmarks.evidence.measures import Group, units_of
from schemas.memories import SearchHit

Unit = Literal["message", "exchange", "session"]
UNITS: Final[tuple[Unit, ...]] = get_args(Unit)


def held(hits: Sequence[SearchHit], unit: Unit) -> list[Sequence[str]]:
    """The messages, or the session, at each place of a ranking."""
    if unit == "exchange":
        return [hit.message_ids for hit in hits]
    each = (hit.message_ids if unit == "message" else [hit.session_id] for hit in hits)
    return [[one] for one in dict.fromkeys(one for several in each for one in several if one)]


def pieces_of(
    evidence: Iterable[Group], unit: Unit, exchanges: Mapping[str, float], sessions: Mapping[str, str]
) -> list[Group]:
    """The evidence in pieces of the unit: two pieces in one exchange, or in one session, are one.

    `exchanges` are the places of messages in a ranking of exchanges that lost nothing, `sessions` the session of each
    message, so the pieces are the same for all rankings, also for those that lost some.
    """
    if unit == "exchange":
        return units_of(evidence, exchanges)
    if unit == "session":
        evidence = (frozenset(sessions.get(one, one) for one in group) for group in evidence)
    return list(dict.fromkeys(evidence))
