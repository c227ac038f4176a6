"""The hot path in an app of Faust."""

from __future__ import annotations

import asyncio
import gc
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka.errors import KafkaConnectionError

from schemas.errors import NotReady
from schemas.settings import Settings
from streams.kafka.faust.hot_path import HotPath
from streams.kafka.faust.threads import ConsumerThread
from streams.worker.wiring.faust_app import faust_app
from tests.streams.kafka.worker import unconnected
from tests.support.waiting import until


async def test_a_worker_can_be_made_where_no_event_loop_is(settings: Settings) -> None:
    """As in a thread; from Python 3.14 on there is none before one runs, not even in the main thread."""
    app = faust_app(settings)
    hot = await asyncio.to_thread(HotPath, app)
    assert hot.app is app


def test_a_consumers_thread_leaves_a_loop_that_is_closed_nothing_to_do() -> None:
    """Faust's own had it run a coroutine, and the loop that was closed before its turn never awaited it."""
    loop = asyncio.new_event_loop()
    thread = cast(Any, SimpleNamespace(parent_loop=loop, last_wakeup_at=0.0))
    asyncio.run(ConsumerThread._wakeup_timer_in_thread(thread))
    loop.close()
    asyncio.run(ConsumerThread._wakeup_timer_in_thread(thread))
    gc.collect()  # a coroutine that nobody awaited would be told of, which fails the test
    assert thread.last_wakeup_at > 0


async def test_where_the_log_ends_is_asked_once_and_a_failure_that_nobody_waits_for_is_not_told(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Those that wait get the error; where all have gone, it would be one of the loop's own."""
    asked, fails = list[str](), asyncio.Event()

    async def ends(topic: str) -> dict[int, int]:
        asked.append(topic)
        await fails.wait()
        raise KafkaConnectionError("no broker")

    with unconnected(settings) as worker:
        hot = worker.hot
        monkeypatch.setattr(hot, "ends", ends)
        monkeypatch.setattr(hot, "readable_before", lambda _topic, _partition: 0)
        monkeypatch.setattr(worker.consumer, "highwater", lambda _tp: None)
        waiting = [asyncio.create_task(hot.is_written(worker.topic, 0, 7)) for _ in range(3)]
        await until(lambda: asked)
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
        late = asyncio.create_task(hot.is_written(worker.topic, 0, 7))
        await asyncio.sleep(0)
        fails.set()
        with pytest.raises(NotReady, match="KafkaConnectionError"):
            await late
        assert asked == [worker.topic]
        fails.clear()
        gone = asyncio.create_task(hot.is_written(worker.topic, 0, 7))
        await until(lambda: len(asked) == 2)
        gone.cancel()
        await asyncio.wait([gone])
        fails.set()
        await until(lambda: not hot._asking_ends)
    gc.collect()
    assert not [record for record in caplog.records if record.name == "asyncio"]
