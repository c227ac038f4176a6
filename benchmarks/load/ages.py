"""A histogram of seconds as Prometheus scrapes it, and its quantiles."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families


class Ages(NamedTuple):
    """`counts[n]` observations are at most `bounds[n]` seconds, and above the bound before. The last is infinite."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]

    @classmethod
    def read(cls, exposition: str, name: str) -> Ages:
        """The histogram of this name, in the text of a worker's `/metrics`."""
        found = {
            float(sample.labels["le"]): int(sample.value)
            for family in text_string_to_metric_families(exposition)
            for sample in family.samples
            if sample.name == f"{name}_bucket"
        }
        bounds = tuple(sorted(found))
        return cls(bounds, tuple(after - before for before, after in pairwise((0, *(found[one] for one in bounds)))))

    def since(self, before: Ages) -> Ages:
        """The observations without those of `before`."""
        return Ages(self.bounds, tuple(now - then for now, then in zip(self.counts, before.counts, strict=True)))

    @property
    def total(self) -> int:
        return sum(self.counts)

    def within(self, seconds: float) -> float:
        """The share up to this age, 1 if there are none; between two bounds, the share up to the lower one."""
        held = sum(count for bound, count in zip(self.bounds, self.counts, strict=True) if bound <= seconds)
        return held / self.total if self.total else 1.0

    def quantile(self, share: float) -> float:
        """The seconds below which this share lies, with ages spread evenly in each bucket; infinite in the last."""
        wanted, below, start = share * self.total, 0, 0.0
        for bound, count in zip(self.bounds, self.counts, strict=True):
            if count and below + count >= wanted:
                return start + (bound - start) * (wanted - below) / count if bound < float("inf") else bound
            below, start = below + count, bound
        return 0.0

    @property
    def longest(self) -> float:
        """The upper bound of the oldest observation, in seconds."""
        return max((bound for bound, count in zip(self.bounds, self.counts, strict=True) if count), default=0.0)
