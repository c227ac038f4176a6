"""Cleanup: queries for the memories that cleanup would archive or remove, with the reasons. Nothing is changed."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self

import duckdb

from schemas.settings import LifecycleSettings
from tables.database.migrations import statement
from tables.memories.catalog.changes import ExpiredItem
from tables.memories.catalog.part import Part, resting

#: The reason why a memory is a candidate. A candidate with the cause `archived` is to be removed. A candidate with
#: another cause is to be archived.
Cause = Literal["deprecated", "summarized", "archived"]
#: The reason why a candidate is neither archived nor removed.
Exemption = Literal["pinned", "whitelist", "link", "recent access"]


class Candidate(NamedTuple):
    """A memory that cleanup would archive or remove, unless it has an exemption.

    It has been in the condition `cause` since the time `since` (epoch ms), which is longer than allowed. The score is
    as of the moment of the query.
    """

    memory_id: uuid.UUID
    user_id: str
    text: str
    since: int
    score: float
    last_accessed: int
    cause: Cause
    exemption: Exemption | None


class Kind(NamedTuple):
    """The key under which candidates are counted: their cause and their exemption."""

    cause: Cause
    exemption: Exemption | None


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The counts of all candidates for cleanup, and a sorted sample of them (`candidates`).

    Candidates without an exemption come first. Then candidates are sorted by waiting time, longest first.
    """

    counts: Counter[Kind] = field(default_factory=Counter)
    candidates: list[Candidate] = field(default_factory=list)

    @property
    def going(self) -> list[Candidate]:
        """The candidates in the sample that have no exemption."""
        return [candidate for candidate in self.candidates if candidate.exemption is None]

    @property
    def going_by_cause(self) -> Counter[Cause]:
        """The numbers of all candidates without an exemption, by the cause of the cleanup."""
        return Counter({kind.cause: number for kind, number in self.counts.items() if kind.exemption is None})

    @property
    def exempt(self) -> Counter[Exemption]:
        """The number of candidates that stay, by exemption."""
        exempt: Counter[Exemption] = Counter()
        for kind, number in self.counts.items():
            if kind.exemption is not None:
                exempt[kind.exemption] += number
        return exempt

    @classmethod
    def together(cls, several: Iterable[Verdicts]) -> Self:
        """Combine several verdicts, such as the verdicts of several shards."""
        all_of_them = list(several)
        return cls(
            sum((verdicts.counts for verdicts in all_of_them), Counter()),
            sorted(
                (candidate for verdicts in all_of_them for candidate in verdicts.candidates),
                key=lambda candidate: (candidate.exemption is not None, candidate.since),
            ),
        )


class Cleanup(Part):
    """Finds candidates among the memories of a catalog, and in its archive."""

    def connect(self, db: duckdb.DuckDBPyConnection) -> None:
        super().connect(db)
        db.execute(statement("cleanup_macros"))

    @resting
    def verdicts(self, now: int, lifecycle: LifecycleSettings, user_id: str | None, limit: int) -> Verdicts:
        """Return the verdicts as of `now` (epoch ms), for one user, or for all users if `user_id` is None.

        The sample has at most `limit` candidates from `memories`, and at most `limit` from the archive.
        """
        settings, white = lifecycle.cleanup, lifecycle.cleanup.whitelist
        common = {
            "now": now,
            "user_id": user_id,
            "fresh_days": lifecycle.fresh_days,
            "half_life_days": lifecycle.half_life_days,
            "users": list(white.users),
            "ids": list(white.ids),
            "tags": list(white.tags),
        }
        limits = {
            "cold": lifecycle.cold,
            "after_days": settings.after_days,
            "recent_access_days": settings.recent_access_days,
            "link_weight": settings.link_weight,
        }
        found = [self._found("archivable", "memories", common | limits, limit)]
        if settings.retention_days is not None:
            retention = {"retention_days": settings.retention_days}
            found.append(self._found("removable", "archive", common | retention, limit))
        return Verdicts.together(found)

    def expired_items(self, now: int, most: int) -> list[ExpiredItem]:
        """Return at most `most` items that have expired as of `now` (epoch ms), in order of expiry."""
        rows = self._db.execute(statement("expired_items"), {"now": now, "most": most}).fetchall()
        return [ExpiredItem(*row) for row in rows]

    def _found(self, name: str, table: Literal["memories", "archive"], given: dict[str, Any], limit: int) -> Verdicts:
        self._db.execute(statement(name), given)
        counts = self._db.execute("SELECT cause, exemption, count(*) FROM candidates GROUP BY ALL").fetchall()
        rows = self._db.execute(
            "SELECT id, user_id, text, since, score, epoch_ms(last_accessed), cause, exemption "
            f"FROM candidates JOIN {table} USING (seq) ORDER BY exemption IS NOT NULL, since, seq LIMIT ?",
            [limit],
        ).fetchall()
        self._db.execute("DROP TABLE candidates")
        return Verdicts(Counter({Kind(*row[:2]): row[2] for row in counts}), [Candidate(*row) for row in rows])
