"""The installed Faust is the one whose inside we override."""

from __future__ import annotations

import asyncio
import gc
from types import SimpleNamespace
from typing import Any, cast

import pytest

from schemas.errors import FaustChanged
from schemas.settings import Settings
from streams.hotpath import overrides
from streams.wiring.faust_app import faust_app


def test_fausts_sources_are_as_expected() -> None:
    """When this fails, read the changed methods, mend the overrides, and note the new fingerprints."""
    assert overrides.fingerprints() == overrides.EXPECTED_SOURCES


def test_another_faust_is_refused_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(overrides.EXPECTED_SOURCES, "Consumer.ack", "0" * 12)
    with pytest.raises(FaustChanged, match=r"Consumer\.ack"):
        overrides.check_faust()


async def test_a_worker_can_be_made_where_no_event_loop_is(settings: Settings) -> None:
    """As in a thread; from Python 3.14 on there is none before one runs, not even in the main thread."""
    app = faust_app(settings)
    hot = await asyncio.to_thread(overrides.HotPath, app)
    assert hot.app is app


def test_a_consumers_thread_leaves_a_loop_that_is_closed_nothing_to_do() -> None:
    """Faust's own had it run a coroutine, and the loop that was closed before its turn never awaited it."""
    loop = asyncio.new_event_loop()
    thread = cast(Any, SimpleNamespace(parent_loop=loop, last_wakeup_at=0.0))
    asyncio.run(overrides._Thread._wakeup_timer_in_thread(thread))
    loop.close()
    asyncio.run(overrides._Thread._wakeup_timer_in_thread(thread))
    gc.collect()  # a coroutine that nobody awaited would be told of, which fails the test
    assert thread.last_wakeup_at > 0
