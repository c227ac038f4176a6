"""Order in time: raises the earliest or the latest of the best memories, and those on one side of an event.

"When did I first visit Rome?"            the earliest of the memories that match about equally well
"Where did I live before I moved?"        memories from before the one that matches "I moved" best
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from schemas.memories import Memory
from schemas.times import iso
from streams.language.anchors import Anchor
from streams.language.order import Occasion

Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]

#: The shares k by which memories are raised (r + k r (1 - r)): the first in an order by all of it, the second by half
#: of it, the third by a third; and those on the right side of an event. They were chosen on the development part of
#: LoCoMo, where few questions have either.
IN_ORDER, ON_SIDE = 1.0, 1.0
#: The lowest relevance, as a share of the best one's, of memories that match about equally well.
ABOUT_EQUAL: Final = 0.9
#: The lowest relevance to the words of an event of a memory that counts as that event.
IS_EVENT: Final = 0.7


@dataclass(frozen=True, slots=True)
class Spans:
    """For each row, when what it tells took place, `[start, end)` (epoch ms)."""

    start: Rows
    end: Rows

    def ahead(self, rows: Rows, first: Occasion) -> Rows:
        """Return for each of the rows the number of others that are certainly before it in the order.

        Of two that overlap, such as a day and its year, neither is before the other.
        """
        ends_before = self.end[rows][:, None] <= self.start[rows][None, :]
        counts: Rows = (ends_before if first == "earliest" else ends_before.T).sum(axis=0)
        return counts


@dataclass(frozen=True, slots=True)
class Event:
    """The memory that tells of the event from which a question counts, its row, and when it took place (epoch ms)."""

    anchor: Anchor
    row: int
    memory: Memory
    start: int
    end: int

    def side(self, spans: Spans, zone: tzinfo) -> npt.NDArray[np.bool_]:
        """Return which rows took place on the side of the event that the question asks for.

        An event lasts for the days of its moment in the user's zone, if the question asks for what was meanwhile.
        """
        if self.anchor.relation == "before":
            return spans.end <= self.start
        if self.anchor.relation == "after":
            return spans.start >= self.end
        start, end = _midnight(self.start, zone), _midnight(self.end - 1, zone, days=1)
        return (spans.start < end) & (spans.end > start)


def raised(relevance: Scores, rows: Rows | npt.NDArray[np.bool_], share: float | Scores) -> Scores:
    """Return the relevance, raised for some rows by a share of what it may still be raised: r + share r (1 - r)."""
    changed = relevance.copy()
    changed[rows] += np.float32(share) * changed[rows] * (1 - changed[rows])
    return changed


def in_order(relevance: Scores, best: Rows, spans: Spans, first: Occasion) -> Scores:
    """Return the relevance, raised by their order for those of the `best` rows that match about equally well."""
    if not len(best):
        return relevance
    equal = best[relevance[best] >= ABOUT_EQUAL * relevance[best].max()]
    share = IN_ORDER / (1 + spans.ahead(equal, first))
    return raised(relevance, equal, share.astype(np.float32))


def explained(anchor: Anchor, event: Event | None) -> dict[str, Any]:
    """Return an anchor in the form of the API. Without an event, no memory told of it and nothing was raised."""
    where: dict[str, Any] = {"memory_id": None, "from": None, "to": None}
    if event is not None:
        where = {"memory_id": str(event.memory.id), "from": iso(event.start), "to": iso(event.end)}
    return {"text": anchor.text, "relation": anchor.relation, **where}


def _midnight(moment: int, zone: tzinfo, days: int = 0) -> int:
    """Return the midnight that begins the moment's day in the zone, or a day some days later."""
    day = datetime.fromtimestamp(moment / 1000, zone).replace(hour=0, minute=0, second=0, microsecond=0)
    return round((day + timedelta(days=days)).timestamp() * 1000)
