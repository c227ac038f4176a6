"""How soon a consumer group misses a worker.

A machine with other work holds a worker up for seconds. On Apache Kafka that costs nothing: a member that leaves, or
comes, is served at once, however long its session is. Tansu has one that comes wait for half of its session, and one
that comes back under the name of its group for all of it: there most tests have the 3 s of `siltstone dev`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from schemas.settings import Settings

LONG_MISSED: Final[Mapping[str, float]] = MappingProxyType(
    {"session_timeout_seconds": 20.0, "rebalance_timeout_seconds": 5.0, "heartbeat_seconds": 1.0}
)
#: For workers that are killed, or paused, and whose partitions are waited for.
SOON_MISSED: Final[Mapping[str, float]] = MappingProxyType(
    {"session_timeout_seconds": 3.0, "rebalance_timeout_seconds": 1.0, "heartbeat_seconds": 0.5}
)


def side_by_side(settings: Settings) -> Settings:
    """For several workers of the test's own process, which hold each other up, and none of which is restarted."""
    update = {**LONG_MISSED, "session_timeout_seconds": 12.0}
    return settings.model_copy(update={"kafka": settings.kafka.model_copy(update=update)})
