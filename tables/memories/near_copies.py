"""Near-copies: texts of a batch of events that say the same as a memory of the user, or as an earlier event.

Texts whose vectors have a cosine above the threshold are only candidates. The rule of `sameness.py` decides.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence

from schemas.events import Promotion, Remember
from schemas.memories import Memory
from tables.memories.catalog.catalog import Catalog
from tables.memories.sameness import Said, in_lower_case, said
from tables.vectors.index import VectorIndex, Vectors, cells_of, earlier_copies, matrix

TextEvent = Promotion | Remember


class NearCopies:
    """The candidates of all events of a batch, found in one pass: stored memories and earlier events of the batch."""

    def __init__(
        self,
        events: Sequence[TextEvent],
        vectors: Mapping[uuid.UUID, Vectors],
        index: VectorIndex,
        catalog: Catalog,
        cosine: float,
    ) -> None:
        #: The tokens of events with candidates, and the candidates' texts in lower case. Each is computed only once.
        self._said: dict[uuid.UUID, Said] = {}
        self._lower: dict[str, str] = {}
        self._stored: dict[uuid.UUID, list[int]] = {}
        self._earlier: dict[uuid.UUID, list[uuid.UUID]] = {}
        if events:
            rows = matrix([vectors[event.event_id] for event in events])
            near = index.near(cells_of([event.user_id for event in events]), rows, cosine)
            self._stored = {events[row].event_id: seqs for row, seqs in near.items()}
            self._among(events, rows, cosine)
        self._rows = catalog.by_seq({seq for found in self._stored.values() for seq in found})

    def _among(self, events: Sequence[TextEvent], rows: Vectors, cosine: float) -> None:
        places: dict[str, list[int]] = {}
        for place, event in enumerate(events):
            places.setdefault(event.user_id, []).append(place)
        for mine in places.values():
            if len(mine) == 1:
                continue
            for row, earlier in earlier_copies(rows[mine], cosine).items():
                self._earlier[events[mine[row]].event_id] = [events[mine[i]].event_id for i in earlier]

    def __bool__(self) -> bool:
        """Return whether any event of the batch has candidates."""
        return bool(self._stored or self._earlier)

    def any_of(self, event: TextEvent) -> bool:
        """Return whether the event has candidates."""
        return bool(self) and (event.event_id in self._stored or event.event_id in self._earlier)

    def stored(self, event: TextEvent) -> Iterator[Memory]:
        """Yield the candidates among the user's stored memories, oldest first, as they were before the batch."""
        for seq in self._stored.get(event.event_id, ()):
            memory = self._rows.get(seq)
            if memory is not None and memory.user_id == event.user_id:
                yield memory

    def earlier(self, event: TextEvent) -> Sequence[uuid.UUID]:
        """Return the event ids of the candidates among the user's earlier events of the batch."""
        return self._earlier.get(event.event_id, ())

    def says_the_same(self, event: TextEvent, memory: Memory) -> bool:
        """Return whether the memory says the same as the event, by the rule of `sameness.py` over both texts."""
        if event.text == memory.text:
            return True
        new = self._said.get(event.event_id)
        if new is None:
            new = self._said[event.event_id] = said(event.text)
        lower = self._lower.get(memory.text)
        if lower is None:
            lower = self._lower[memory.text] = in_lower_case(memory.text)
        return new.may_be_in(lower) and new.same(said(memory.text))
