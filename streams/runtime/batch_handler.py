"""`BatchHandler`: the type of an agent's handler, which Kafka, telemetry and the agents share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

#: Called with a partition and its fetched records, in order. If it raises an exception, the worker stops, and does
#: not commit the batch. If it returns an awaitable, the batch counts as processed when the awaitable is done. The
#: next batch does not wait for the awaitable.
BatchHandler = Callable[[int, Sequence[Any]], Awaitable[Awaitable[Any] | None]]
