"""A user's question, as it is asked and as it is ranked, and its hits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from schemas.memories import SearchHit, State
from schemas.settings import LifecycleSettings
from streams.models.embedding.calibration import Scale
from streams.recall.filtering import Condition
from streams.recall.windows import ShownWindow
from streams.telemetry.recovery_progress import Behind
from tables.search.window_rows import SaidRow
from tables.vectors.index import Vectors


@dataclass(frozen=True, slots=True)
class Query:
    """A user's question, the number of hits wanted, and which of the user's memories to search.

    Memories that another one replaces are left out unless `replaced` is set. With `touch`, a relevant hit counts as
    an access; evaluations and prefetches leave it off. With `short_term`, exchanges of the user's windows that are
    not memories are searched too, except those that `beside` shows already.
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


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A query ready to be ranked: its `parts`, their `vectors` float32[parts, d], and `now` (epoch ms).

    `said` are the exchanges of windows, oldest first; `said_vectors` are their vectors, float32[n, d].
    """

    query: Query
    parts: Sequence[str]
    vectors: Vectors
    scale: Scale
    now: int
    lifecycle: LifecycleSettings
    said: Sequence[SaidRow] = ()
    said_vectors: Vectors | None = None


class Hits(list[SearchHit]):
    """The hits of a search, best first.

    `elsewhere` counts, by state, memories that are more relevant than every hit but in a state that the query
    excludes; at most `top_k` of them. `behind` lists what had not recovered yet, if the hits may be incomplete.
    """

    def __init__(self, hits: Iterable[SearchHit] = (), elsewhere: Mapping[State, int] = MappingProxyType({})) -> None:
        super().__init__(hits)
        self.elsewhere = elsewhere
        self.behind: Sequence[Behind] = ()
