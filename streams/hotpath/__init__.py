"""Faust made fast and lossless.

A fetched batch of one partition is one event (`BatchHandler`), tables write behind, and an offset is committed
only when everything that its records caused is acknowledged by the broker. `overrides` is the one module that
touches Faust's inside; `ledger` and `outbox` know nothing of Faust.
"""

from streams.hotpath.attempts import Failing
from streams.hotpath.outbox import Outbox, StateStore
from streams.hotpath.overrides import BatchHandler, HotPath, Lost, Restored, check_faust

__all__ = ["BatchHandler", "Failing", "HotPath", "Lost", "Outbox", "Restored", "StateStore", "check_faust"]
