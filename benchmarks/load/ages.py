"""A histogram of seconds as Prometheus scrapes it, and the quantiles that it allows."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families


class Ages(NamedTuple):
    """How many observations are at most `bounds[n]` seconds, and more than the bound before; the last is infinite."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]

    @classmethod
    def read(cls, exposition: str, name: str) -> Ages:
        """Of the histogram of that name, in the text that a worker's `/metrics` answers."""
        found = {
            float(sample.labels["le"]): int(sample.value)
            for family in text_string_to_metric_families(exposition)
            for sample in family.samples
            if sample.name == f"{name}_bucket"
        }
        bounds = tuple(sorted(found))
        return cls(bounds, tuple(after - before for before, after in pairwise((0, *(found[one] for one in bounds)))))

    def since(self, before: Ages) -> Ages:
        """Without those that were there before."""
        return Ages(self.bounds, tuple(now - then for now, then in zip(self.counts, before.counts, strict=True)))

    @property
    def total(self) -> int:
        return sum(self.counts)

    def within(self, seconds: float) -> float:
        """The share that is at most so old, 1 of none; between two bounds, that of the one below."""
        held = sum(count for bound, count in zip(self.bounds, self.counts, strict=True) if bound <= seconds)
        return held / self.total if self.total else 1.0

    def quantile(self, share: float) -> float:
        """Seconds that this share is below, with ages spread evenly within each bucket; infinite beyond the last."""
        wanted, below, start = share * self.total, 0, 0.0
        for bound, count in zip(self.bounds, self.counts, strict=True):
            if count and below + count >= wanted:
                return start + (bound - start) * (wanted - below) / count if bound < float("inf") else bound
            below, start = below + count, bound
        return 0.0

    @property
    def longest(self) -> float:
        """The upper bound of the oldest: seconds that nothing exceeds."""
        return max((bound for bound, count in zip(self.bounds, self.counts, strict=True) if count), default=0.0)
