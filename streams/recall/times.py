"""Time in questions: what was said at the time that a question names, or speaks of it, is raised, never filtered.

"What did I do last week?"     memories of last week, and memories that speak of it
"When did I move to Oslo?"     memories that name a time

An order or an event ("the first time", "before I moved") is read here as well; `order` raises memories by it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from schemas.memories import Memory
from schemas.times import iso
from streams.language.anchors import Anchor, anchor_of
from streams.language.order import Order, order_of
from streams.recall.dates import ReferenceDate
from streams.recall.order import IS_EVENT, ON_SIDE, Event, Spans, explained, in_order, raised
from streams.recall.ranking import top
from tables.search.spoken_times import READ_CHARS
from tables.time_expressions.windows import Window, windows_of

Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]

#: The shares k by which a memory in a window, and one that names a time, are raised: r + k r (1 - r). So one that has
#: nothing to do with the question stays irrelevant. They were chosen on the development part of LoCoMo.
IN_WINDOW, NAMES_A_TIME = 1.0, 0.5
#: The number of best candidates whose times are compared with those of the question, and of hits that show theirs.
READ: Final = 20
#: The kind of the memory that tells of the event: it alone is of this kind. See `Raised.kinds`.
EVENT: Final = 4
_WHEN: Final = re.compile(
    r"(?i)\bwhen\b|\b(?:what|which) (?:date|day|month|year|time)\b|\bhow long ago\b|什么时候|何时|哪[天年月]"
    "|几[号月点]"
)


class Reader:
    """Reads rows of one ranking: their memories, and the windows that their texts speak of in its user's time zone.

    The windows of a row are read once, because the ranking and the hits need them.
    """

    def __init__(
        self, memories: Callable[[Rows], list[Memory]], windows: Callable[[Rows, tzinfo], list[list[Window]]]
    ) -> None:
        self.memories, self._windows = memories, windows
        self._read: dict[int, list[Window]] = {}

    def windows(self, rows: Rows, zone: tzinfo) -> list[list[Window]]:
        unread = [row for row in rows.tolist() if row not in self._read]
        if unread:
            self._read.update(zip(unread, self._windows(np.array(unread, np.int64), zone), strict=True))
        return [self._read[row] for row in rows.tolist()]


class Raised(NamedTuple):
    """The raised relevance, and the event from which the question counts, if a memory tells of it.

    `kinds` are equal for rows that the windows and the event of the question treat alike, int8[n]; None if it has no
    times.
    """

    relevance: Scores
    event: Event | None = None
    kinds: npt.NDArray[np.int8] | None = None


@dataclass(frozen=True, slots=True)
class AskedTimes:
    """The windows that a question names, whether it asks for a time, and the order and the event that it asks by."""

    windows: Sequence[Window]
    when: bool
    reference: ReferenceDate
    order: Order | None = None
    anchor: Anchor | None = None

    def __bool__(self) -> bool:
        return bool(self.windows) or self.when or self.order is not None or self.anchor is not None

    @classmethod
    def of(cls, parts: Sequence[str], reference: ReferenceDate) -> AskedTimes:
        """Read the parts of a query (see `questions`). Chat around its questions has no times.

        Of several questions none has an order or an event, because the memories of all are ranked together.
        """
        asked = [part[:READ_CHARS] for part in parts[1:] or parts]
        windows = [window for part in asked for window in windows_of(part, reference.moment, reference.zone)]
        when = any(_WHEN.search(part) for part in asked)
        if len(asked) > 1:
            return cls(windows, when, reference)
        anchor, order = anchor_of(asked[0], [window.text for window in windows]), order_of(asked[0])
        if anchor is not None and anchor.relation == "during" and order is not None:
            anchor = None  # "the first time that I was in Berlin" is an occasion of its own
        if anchor is not None:  # in "after I first saw Rome", the order is not one of the question
            order = order_of(asked[0].replace(anchor.text, " ", 1))
        return cls(windows, when, reference, order, anchor)

    @property
    def clauses(self) -> list[str]:
        """The words of the event, to be ranked like the parts of the query; at most one text."""
        return [] if self.anchor is None else [self.anchor.text]

    def raised(
        self,
        relevance: Scores,
        created_at: Rows,
        allowed: npt.NDArray[np.bool_],
        reader: Reader,
        of_event: Scores | None = None,
    ) -> Raised:
        """Return the relevance, raised for what was said in a window, and for the best that speak of one.

        For a question that asks for a time, those that name any time are raised. Then it is raised for those on the
        side of the event, and by the order of the best ones of these. `of_event` is the relevance to the words of the
        event.
        """
        inside = np.zeros(len(relevance), np.bool_)
        for window in self.windows:
            inside |= (created_at >= window.start) & (created_at < window.end)
        best = top(relevance, allowed, READ)
        names = np.zeros(len(relevance), np.bool_)
        spans = Spans(created_at.copy(), created_at + 1)
        for row, windows in zip(best.tolist(), reader.windows(best, self.reference.zone), strict=True):
            inside[row] |= self._meets(windows)
            names[row] = bool(windows)
            spans.start[row], spans.end[row] = self._span(int(created_at[row]), windows)
        relevance, kinds = raised(relevance, inside, IN_WINDOW), inside.astype(np.int8)
        if self.when:
            relevance = raised(relevance, names, NAMES_A_TIME)
        event = None if of_event is None else self._event(of_event, allowed, reader)
        if event is not None:
            side = event.side(spans, self.reference.zone)
            relevance, best = raised(relevance, side, ON_SIDE), best[side[best]]
            kinds += 2 * side.astype(np.int8)
            kinds[event.row] = EVENT
        if self.order is not None and (self.anchor is None or event is not None):
            relevance = in_order(relevance, best, spans, self.order.first)
        return Raised(relevance, event, kinds)

    def _event(self, of_event: Scores, allowed: npt.NDArray[np.bool_], reader: Reader) -> Event | None:
        """Return the memory that tells of the event, if one matches its words well enough."""
        row = top(of_event, allowed, 1)
        if self.anchor is None or not len(row) or of_event[row[0]] < IS_EVENT:
            return None
        (memory,), (windows,) = reader.memories(row), reader.windows(row, self.reference.zone)
        return Event(self.anchor, int(row[0]), memory, *self._span(memory.created_at, windows))

    def _span(self, said: int, spoken: Iterable[Window]) -> tuple[int, int]:
        """Return when it took place: in the first window that it speaks of, or when it was said (epoch ms).

        A window that has not begun at the time of the question tells of a plan, and one that the memory was said in
        tells less than that.
        """
        for window in spoken:
            if window.start <= self.reference.moment and not window.start <= said < window.end:
                return window.start, window.end
        return said, said + 1

    def _meets(self, spoken: Iterable[Window]) -> bool:
        return any(mine.start < one.end and one.start < mine.end for mine in self.windows for one in spoken)

    def explained(self, event: Event | None) -> dict[str, Any]:
        """Return the windows, the order and the event in the form of the API; those that the question has."""
        shown: dict[str, Any] = {}
        if self.windows:
            shown["times"] = [{"text": one.text, "from": iso(one.start), "to": iso(one.end)} for one in self.windows]
        if self.order is not None:
            shown["order"] = {"text": self.order.text, "first": self.order.first}
        if self.anchor is not None:
            shown["anchor"] = explained(self.anchor, event)
        return shown
