"""Workers' lives: what they read, how they end, and what they hold in the end."""

from __future__ import annotations

import signal
import subprocess
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import orjson

from schemas.settings import KafkaSettings, Settings
from streams.kafka.clients.broker import ensure_topics
from tests.crash.chatter import Said, produce
from tests.crash.holdings import summaries, tables, vectors, windows
from tests.support.committed import all_committed
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE, until, until_it_is
from tests.support.workers import WITH_TOY, WorkerProcess, asked, sources, worker_process

PARTITIONS = 4
#: How long a worker that hangs has to say where its threads stand.
ANSWER_SECONDS = 10.0
GAP_SECONDS = 3600

#: Timers strike often; silence, which is of the wall clock, never.
ENVIRONMENT = {
    "SILTSTONE_KAFKA__COMMIT_SECONDS": "0.2",
    "SILTSTONE_MEMORY__EXCHANGE_GAP_SECONDS": str(GAP_SECONDS),
    "SILTSTONE_MEMORY__SESSION_IDLE_SECONDS": "7200",
    "SILTSTONE_MEMORY__CAPACITY": "20",
    "SILTSTONE_LONG_TERM__SAVE_SECONDS": "1",
    "SILTSTONE_LIFECYCLE__CLOCK": "event",
    "SILTSTONE_LIFECYCLE__RECOMPUTE_SECONDS": "1",
    "SILTSTONE_ANALYTICS__SECONDS": "1",
    "PYTHONFAULTHANDLER": "1",
}


class Holdings(NamedTuple):
    tables: dict[str, Counter[str]]
    vectors: dict[str, np.ndarray[Any, np.dtype[np.float32]]]
    windows: dict[str, Any]
    summaries: Counter[tuple[str, str]]


def idle(port: int) -> bool:
    """As the worker sees it. Raises `NoAnswer`."""
    ready = asked(port, "/readyz")["ready"]
    return bool(ready) and set(asked(port, "/v1/stats/pipeline")["lag"].values()) == {0}


async def until_idle(worker: WorkerProcess, kafka: KafkaSettings, steadily: float = 2) -> None:
    """It is ready, and its group has committed all that there is, for so many seconds on end: timers strike."""
    since: float | None = None

    async def for_long() -> bool:
        nonlocal since
        quiet = asked(worker.port, "/readyz")["ready"] and await all_committed(kafka)
        since = (since or time.monotonic()) if quiet else None
        return since is not None and time.monotonic() >= since + steadily

    await until_it_is(for_long, alive=worker, seconds=300, pace=0.5)


@contextmanager
def living(
    settings: Settings,
    port: int,
    program: Sequence[str] = WITH_TOY,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[WorkerProcess]:
    """A worker whose timers strike often, killed at the end of the block if it still lives."""
    with worker_process(
        settings, port, program=program, environment_of_its_own={**ENVIRONMENT, **environment}
    ) as worker:
        yield worker


def stop(worker: subprocess.Popen[bytes]) -> None:
    """It is orderly, and leaves no child behind. A worker that hangs says where each thread stood."""
    children, deadline = children_of(worker), time.monotonic() + PATIENCE
    worker.send_signal(signal.SIGTERM)
    try:
        assert worker.wait(PATIENCE) == 0
    except subprocess.TimeoutExpired:
        worker.send_signal(signal.SIGABRT)  # `faulthandler` answers it
        worker.wait(ANSWER_SECONDS)
        raise
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < deadline, "a child is still there"
        time.sleep(0.05)


def children_of(worker: subprocess.Popen[bytes]) -> list[int]:
    """The processes that it has started."""
    listed = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text(encoding="ascii")
    return [int(child) for child in listed.split()]


async def peaceful_end(
    settings: Settings,
    portions: int,
    environment: Mapping[str, str] = MappingProxyType({}),
    program: Sequence[str] = WITH_TOY,
) -> Holdings:
    """What a worker holds when it has read all that there is, and has been stopped."""
    port = free_port()
    with living(settings, port, program, environment) as worker:
        await until(lambda: asked(port, "/readyz").get("ready"), alive=worker)
        await until_idle(worker, settings.kafka)
        shown = windows(port, portions)
        stop(worker)
    data = settings.data_dir
    return Holdings(tables(data), vectors(data), shown, summaries(data))


async def undisturbed(
    settings: Settings, said: Sequence[Sequence[Said]], program: Sequence[str] = WITH_TOY, **environment: str
) -> Holdings:
    """What a worker holds that is given all of it at once, and left alone: each message once, to begin with."""
    await ensure_topics(settings.kafka)
    await produce(settings, [record for records in said for record in records])
    held = await peaceful_end(settings, len(said), environment, program)
    kept = sources(settings)
    assert set(kept.values()) == {1}
    assert kept.keys() == {identity for records in said for record in records if (identity := message_id(record))}
    return held


def assert_equal(held: Holdings, expected: Holdings) -> None:
    """Nothing is lost, doubled or different."""
    for name, rows in expected.tables.items():
        unexpected, missing = held.tables[name] - rows, rows - held.tables[name]
        shown = f"{name}: {[*unexpected][:2]} in the place of {[*missing][:2]}"
        assert (len(unexpected), len(missing)) == (0, 0), shown
    assert held.windows == expected.windows
    assert held.summaries == expected.summaries
    assert held.vectors.keys() == expected.vectors.keys()
    for identity, vector in expected.vectors.items():
        np.testing.assert_allclose(held.vectors[identity], vector, atol=1e-5)


def of_its_own(settings: Settings, data: Path) -> Settings:
    """Topics, group and data directory that nobody else has."""
    name = uuid.uuid4().hex[:8]
    kafka = settings.kafka.model_copy(update={"partitions": PARTITIONS, "topic_prefix": f"{name}.", "group_id": name})
    return settings.model_copy(update={"kafka": kafka, "data_dir": data})


def message_id(record: Said) -> str | None:
    """The id of a message that came under its user's key."""
    if record.topic != "conversations" or not record.key.startswith(b"user-") or b"message_id" not in record.value:
        return None
    fields = orjson.loads(record.value)
    return None if fields.get("type") else str(fields["message_id"])
