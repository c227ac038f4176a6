"""Time in questions: what was said at the time that a question names, or speaks of it, is raised, never filtered.

"What did I do last week?"     memories of last week, and memories that speak of it
"When did I move to Oslo?"     memories that name a time
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from schemas.memories import Memory
from schemas.times import iso
from streams.language.times.windows import Window, windows_of
from streams.recall.dates import ReferenceDate
from streams.recall.ranking import top

Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]

#: The shares k by which a memory in a window, and one that names a time, are raised: r + k r (1 - r). So one that has
#: nothing to do with the question stays irrelevant. They were chosen on the development part of LoCoMo.
IN_WINDOW, NAMES_A_TIME = 1.0, 0.5
#: The number of best candidates whose texts are read for times, and of characters of each text, and of a question.
READ, READ_CHARS = 20, 1_000
_WHEN: Final = re.compile(
    r"(?i)\bwhen\b|\b(?:what|which) (?:date|day|month|year|time)\b|\bhow long ago\b|什么时候|何时|哪[天年月]"
    "|几[号月点]"
)


@dataclass(frozen=True, slots=True)
class AskedTimes:
    """The windows that a question names, and whether it asks for a time."""

    windows: Sequence[Window]
    when: bool
    reference: ReferenceDate

    def __bool__(self) -> bool:
        return bool(self.windows) or self.when

    @classmethod
    def of(cls, parts: Sequence[str], reference: ReferenceDate) -> AskedTimes:
        """Read the parts of a query (see `questions`). Chat around its questions has no times."""
        asked = [part[:READ_CHARS] for part in parts[1:] or parts]
        windows = [window for part in asked for window in windows_of(part, reference.moment, reference.zone)]
        return cls(windows, any(_WHEN.search(part) for part in asked), reference)

    def raised(
        self,
        relevance: Scores,
        created_at: Rows,
        allowed: npt.NDArray[np.bool_],
        shown: Callable[[Rows], list[Memory]],
    ) -> Scores:
        """Return the relevance, raised for what was said in a window, and for the best that speak of one.

        For a question that asks for a time, those that name any time are raised.
        """
        raised = relevance.copy()
        inside = np.zeros(len(relevance), np.bool_)
        for window in self.windows:
            inside |= (created_at >= window.start) & (created_at < window.end)
        best = top(relevance, allowed, READ)
        names = np.zeros(len(relevance), np.bool_)
        for row, memory in zip(best.tolist(), shown(best), strict=True):
            spoken = windows_of(memory.text[:READ_CHARS], memory.created_at, self.reference.zone)
            inside[row] |= self._meets(spoken)
            names[row] = bool(spoken)
        raised[inside] += np.float32(IN_WINDOW) * raised[inside] * (1 - raised[inside])
        if self.when:
            raised[names] += np.float32(NAMES_A_TIME) * raised[names] * (1 - raised[names])
        return raised

    def _meets(self, spoken: Iterable[Window]) -> bool:
        return any(mine.start < one.end and one.start < mine.end for mine in self.windows for one in spoken)

    def explained(self) -> list[dict[str, Any]]:
        """Return the windows in the form of the API."""
        return [{"text": one.text, "from": iso(one.start), "to": iso(one.end)} for one in self.windows]
