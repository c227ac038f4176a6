"""A user's question (`Query`), the same question prepared for ranking (`PreparedQuery`), and its `Hits`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, Self

from schemas.embedding_models import USE
from schemas.lifecycle import wanted_states
from schemas.memories import SearchHit, ShownState, State
from schemas.settings import LifecycleSettings
from streams.models.embedding.calibration import Scale
from streams.recall.dates import ReferenceDate
from streams.recall.filtering import Condition, HeldAt
from streams.recall.reranking import Reranked
from streams.recall.times import AskedTimes
from streams.recall.windows import ShownWindow
from streams.telemetry.recovery_progress import Behind
from tables.search.window_rows import SaidRow
from tables.vectors.index import Vectors


class Among(NamedTuple):
    """The states of the memories that are asked for, and whether those are included that another memory replaces."""

    states: frozenset[State]
    replaced: bool

    @classmethod
    def of(
        cls,
        *,
        state: ShownState | None = None,
        include_all: bool = False,
        include_cold: bool = False,
        as_of: bool = False,
    ) -> Self:
        """Return what the parameters of a search or a list ask for: see `wanted_states`.

        What held at another time (`as_of`) may have cooled down, or may have been replaced since.
        """
        states = wanted_states(state=state, include_all=include_all or as_of, include_cold=include_cold)
        return cls(states, as_of or (include_all and state is None))


@dataclass(frozen=True, slots=True)
class Query:
    """A user's question, the maximum number of hits (`top_k`), and conditions on the memories to search.

    Memories that another memory replaces are searched only if `replaced` is true. With `touch`, a relevant hit counts
    as an access; evaluations and prefetches set it to false. With `short_term`, window exchanges that have no memory
    are also searched, except the exchanges that the prompt already shows (`beside`). `reference` is the day from
    which hits are dated; without it, they are not. With `as_of` (epoch ms), only memories that held then are
    searched, and only statements that were made until then update others.
    """

    user_id: str
    text: str
    top_k: int
    states: frozenset[State]
    explain: bool = False
    replaced: bool = False
    min_relevance: float = 0.0
    filters: tuple[Condition, ...] = ()
    touch: bool = True
    short_term: bool = True
    beside: ShownWindow | None = None
    reference: ReferenceDate | None = None
    as_of: int | None = None
    rerank: bool = True

    @property
    def conditions(self) -> Sequence[Condition]:
        """The conditions on memories: the filters, and that a memory held at `as_of`."""
        return self.filters if self.as_of is None else (*self.filters, HeldAt(self.as_of))


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A query with everything that ranking needs.

    `parts` are the query's text and the single questions in it, and `vectors` are the vectors of the parts and of the
    `clauses`, float32[parts + clauses, d]. `scale` is the scale of the model's cosines, and `dense_share` their
    weight beside BM25. `lift` raises the relevances that are shown (see `lifted`). `now` is the time of the search
    (epoch ms). `said` are the window exchanges to rank, oldest first, and `said_vectors` are the exchanges' vectors,
    float32[n, d]. With `updates`, statements are ranked before those that they update. `times` are the times that the
    query names. `reranked` are a reranker's scores, after it was asked.
    """

    query: Query
    parts: Sequence[str]
    vectors: Vectors
    scale: Scale
    now: int
    lifecycle: LifecycleSettings
    said: Sequence[SaidRow] = ()
    said_vectors: Vectors | None = None
    updates: bool = True
    times: AskedTimes | None = None
    dense_share: float = USE.dense_share
    lift: float = 0.0
    reranked: Reranked | None = None

    @property
    def clauses(self) -> Sequence[str]:
        """The words of the event from which the question counts, if there is one, ranked beside the parts."""
        return () if self.times is None else self.times.clauses


class Hits(list[SearchHit]):
    """The hits of a search, best first.

    `elsewhere` counts, by state, the memories that are more relevant than every hit, but whose state the query
    excludes. At most `top_k` such memories are counted. If the hits may be incomplete, `behind` lists the parts of
    the partition that are still recovering.
    """

    def __init__(
        self,
        hits: Iterable[SearchHit] = (),
        elsewhere: Mapping[State, int] = MappingProxyType({}),
        behind: Sequence[Behind] = (),
    ) -> None:
        super().__init__(hits)
        self.elsewhere, self.behind = elsewhere, behind
