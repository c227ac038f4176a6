"""What an agent's batches are handled by: the one type that Kafka, telemetry and the agents share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

#: Called with a partition and its fetched records, in order. What it raises stops the worker, uncommitted. Where
#: it returns an awaitable, the batch counts as processed when that is done; the next one does not wait for it.
BatchHandler = Callable[[int, Sequence[Any]], Awaitable[Awaitable[Any] | None]]
