"""`BatchHandler`: the type of an agent's handler, which Kafka, telemetry and the agents share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

#: Called with a partition and its fetched records, in order. An exception stops the worker, and the batch is not
#: committed. If it returns an awaitable, the batch counts as processed when that is done; the next one does not wait.
BatchHandler = Callable[[int, Sequence[Any]], Awaitable[Awaitable[Any] | None]]
