"""The lag of each topic, sampled once a second, and whether it grows."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping
from statistics import fmean
from typing import Final

import httpx

LOOK_SECONDS: Final = 1.0
#: A growth by fewer records is noise.
LEAST: Final = 50


class LagWatch:
    """Lag by topic, for every second of the watch; an answer that took several seconds counts for each of them."""

    def __init__(self, lag: Callable[[], Awaitable[Mapping[str, int]]]) -> None:
        self._lag = lag
        self.by_topic: dict[str, list[int]] = {}

    async def watch(self, each_second: Callable[[], None]) -> None:
        """Sample the lag until cancelled."""
        begun = time.monotonic()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            each_second()
            with contextlib.suppress(httpx.HTTPError):
                for topic, lag in (await self._lag()).items():
                    lags = self.by_topic.setdefault(topic, [])
                    lags += [lag] * max(1, round((time.monotonic() - begun) / LOOK_SECONDS) - len(lags))


def grown(lags: list[int]) -> float:
    """Records by which lag grew in the second half: the mean of its last third minus that of its first third."""
    half = lags[len(lags) // 2 :]
    third = max(1, len(half) // 3)
    return fmean(half[-third:]) - fmean(half[:third]) if half else 0.0


def falls_behind(lags: list[int], records_a_second: float) -> bool:
    """Whether lag grew in the second half by more than the records of one second."""
    return grown(lags) > max(LEAST, records_a_second)
