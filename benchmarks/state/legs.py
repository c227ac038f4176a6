"""The parts of a run of `scale.py`, one after the other, on the same log and the same disk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

import aiokafka

from benchmarks.load.open_loop import OpenLoop
from benchmarks.state import changes, silence
from benchmarks.state.filling import MEMORIES_A_USER, PRODUCED_BYTES, users_of
from benchmarks.state.object_stores import ObjectStore, object_store
from benchmarks.state.process_memory import REST_SECONDS, bytes_on_disk, settled
from benchmarks.state.workers import Cluster
from benchmarks.worker import LOOK_AGAIN_SECONDS, WorkerProcess, kafka_at
from schemas.topics import Topics
from streams.kafka.clients.broker import EmbeddedBroker, client_options, embedded_broker, ensure_topics

Figures = dict[str, Any]
#: Runs a hidden command of the script in its own process.
InAProcess = Callable[..., Figures]

ALL: Final = ("memory", "windows", "restart", "checkpoint", "rebuild", "warm")

#: The memory of windows: little, so that silent sessions are on disk only.
RESIDENT: Final = "16MiB"
#: One in this many memories is embedded again, but no fewer than `LEAST_REBUILT`.
REBUILT: Final = 100
LEAST_REBUILT: Final = 2_000
#: This many messages are produced and taken in before the next ones, because a backlog takes memory too.
SAID_AT_A_TIME: Final = 20_000
FILLED: Final = "scale"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure."""

    memories: int
    window_rows: int
    partitions: int
    store: str
    legs: frozenset[str]


async def measure(plan: Plan, root: Path, in_a_process: InAProcess) -> Figures:
    """Measure all figures. Data is put under `root`."""
    figures: Figures = {
        "memories": plan.memories,
        "window_rows": plan.window_rows,
        "partitions": plan.partitions,
        "store": plan.store,
        "users": sum(map(len, users_of(plan.memories, plan.partitions))),
        "memories_a_user": MEMORIES_A_USER,
    }
    with embedded_broker() as broker, object_store(plan.store, root / "objects") as store:
        kafka = kafka_at(broker, FILLED, plan.partitions)
        users = [names[0] for names in users_of(plan.memories, plan.partitions)]
        run = _Run(plan, root, broker, Cluster(kafka, users, {"MEMORY__RESIDENT_BYTES": RESIDENT}), store, figures)
        await ensure_topics(kafka)
        if plan.legs - {"memory"}:
            await run.empty()
        if plan.legs - {"rebuild"}:
            shards = run.disk / "data" / "shards"
            figures |= in_a_process("fill", *run.log_of(FILLED), plan.memories, shards)
            if "memory" in plan.legs:
                figures |= in_a_process("shards", shards, plan.memories, plan.partitions)
        if "windows" in plan.legs:
            await run.windows()
        if "restart" in plan.legs:
            await run.restart()
        if "checkpoint" in plan.legs:
            await run.checkpoint()
        if "rebuild" in plan.legs:
            await run.rebuild(in_a_process)
        if "warm" in plan.legs:
            await run.warm()
    return figures


@dataclass(frozen=True, slots=True)
class _Run:
    """`cluster` has no object store; `disk` is the folder of the worker that has all data."""

    plan: Plan
    root: Path
    broker: EmbeddedBroker
    cluster: Cluster
    store: ObjectStore
    figures: Figures

    @property
    def disk(self) -> Path:
        return self.root / "disk"

    def log_of(self, prefix: str) -> tuple[str, str, int]:
        """The arguments by which another process finds the log."""
        return self.broker.bootstrap_servers, prefix, self.plan.partitions

    async def empty(self) -> None:
        """Measure the start of an empty worker: the better of two starts in an existing group, as in other legs."""
        kafka = kafka_at(self.broker, "empty", self.plan.partitions)
        await ensure_topics(kafka)
        empty, folder = replace(self.cluster, kafka=kafka, known=False), self.root / "empty"
        self.figures["empty_first_start_s"] = round(await empty.started(folder), 2)
        again = await empty.started(folder)
        async with empty.worker(folder) as worker:
            self.figures["empty_start_s"] = round(min(again, await empty.answers(worker)), 2)
            self.figures["empty_anon_mb"] = round(settled(worker.anonymous_bytes) / 1e6)
            self.figures["empty_stop_s"] = round(await worker.stop(), 2)
        if "warm" in self.plan.legs:
            self.figures["empty_takeover_s"] = round(await empty.lost(folder, self.root / "empty-other"), 2)

    async def windows(self) -> None:
        """Measure the memory of a message in a silent session, once the windows' memory is full."""
        figures, kafka = self.figures, self.cluster.kafka
        sessions, now = silence.sessions_of(self.plan.window_rows), round(time.time() * 1e3)
        halves = range(sessions // 2), range(sessions // 2, sessions)
        topic = Topics.with_prefix(kafka.topic_prefix).conversations
        held, messages, seconds = list[int](), list[int](), 0.0
        async with AsyncExitStack() as stack:
            producer = aiokafka.AIOKafkaProducer(**client_options(kafka), max_batch_size=PRODUCED_BYTES)
            loop = OpenLoop(await stack.enter_async_context(producer), topic, kafka.partitions)
            worker = await stack.enter_async_context(self.cluster.worker(self.disk))
            figures["first_start_s"] = round(await self.cluster.answers(worker), 2)
            first = await asyncio.to_thread(settled, worker.anonymous_bytes, REST_SECONDS)
            figures["first_anon_mb"] = round(first / 1e6)
            for half in halves:
                began = time.monotonic()
                said = silence.messages_of(half, sessions, kafka.partitions, now)
                while records := list(islice(said, SAID_AT_A_TIME)):
                    await loop.fill(records)
                    while await worker.taken_in() < loop.produced:  # noqa: ASYNC110 - another process's number
                        await asyncio.sleep(LOOK_AGAIN_SECONDS)
                await worker.until_idle()
                seconds += time.monotonic() - began
                held.append(await asyncio.to_thread(settled, worker.anonymous_bytes, REST_SECONDS))
                messages.append(loop.produced)
            figures |= {
                "window_messages": loop.produced,
                "window_messages_per_s": round(loop.produced / seconds),
                "anon_bytes_per_window_message": round((held[1] - held[0]) / (messages[1] - messages[0]), 1),
                "windows_anon_mb": [round(each / 1e6) for each in held],
                "stop_s": round(await worker.stop(), 2),
                "disk_bytes_per_window_message": round(bytes_on_disk(self.disk / "data" / "windows") / loop.produced),
            }

    async def restart(self) -> None:
        """Measure a restart after an orderly stop, and after a kill, which the group must notice first."""
        figures = self.figures
        async with self.cluster.worker(self.disk) as worker:
            figures["restart_s"] = round(await self.cluster.answers(worker), 2)
            rest = await asyncio.to_thread(settled, worker.anonymous_bytes, REST_SECONDS)
            figures["restarted_anon_mb"] = round(rest / 1e6)
            if messages := figures.get("window_messages"):
                more = (figures["restarted_anon_mb"] - figures["first_anon_mb"]) * 1e6
                figures["anon_bytes_per_window_message_restarted"] = round(more / messages, 1)
            await worker.kill()
        figures["restart_killed_s"] = round(await self.cluster.started(self.disk), 2)
        figures["restart_beyond_empty_s"] = self._beyond_empty(figures["restart_s"])

    def _beyond_empty(self, seconds: float) -> float:
        return round(seconds - float(self.figures["empty_start_s"]), 2)

    async def checkpoint(self) -> None:
        """The first checkpoint has everything, the next ones the changes; an empty disk then gets the newest one."""
        figures, cluster, kafka = self.figures, replace(self.cluster, store=self.store), self.cluster.kafka
        async with cluster.worker(self.disk) as worker:
            await cluster.answers(worker)
            figures["checkpoint_s"] = round(await self._checkpointed(worker), 2)
        whole = self._uploaded({})
        figures["uploaded_mb"] = round(whole / 1e6, 1)
        changed = uploaded = 0
        for name, effect, change in (("new", "new", changes.add_new), ("accessed", "touched", changes.access)):
            before = self.store.sizes()
            async with cluster.worker(self.disk) as worker:
                await cluster.answers(worker)
                count = await change(kafka, self.plan.memories)
                while (await worker.pipeline())["memories"].get(effect, 0) < count:  # noqa: ASYNC110
                    await asyncio.sleep(LOOK_AGAIN_SECONDS)
                await worker.until_idle()
                figures[f"checkpoint_{name}_s"] = round(await self._checkpointed(worker), 2)
            more = self._uploaded(before)
            figures |= {f"changed_{name}": count, f"uploaded_share_{name}": round(more / whole, 4)}
            changed, uploaded = changed + count, uploaded + more
        figures["uploaded_share"] = round(uploaded / whole, 4)
        figures["changed_share"] = round(changed / self.plan.memories, 4)
        async with cluster.worker(self.root / "successor") as worker:
            figures["restore_s"] = round(await cluster.answers(worker), 2)
            figures["restored_memories"] = (await worker.states())["total"]
            await worker.kill()
        figures["restore_beyond_empty_s"] = self._beyond_empty(figures["restore_s"])

    async def _checkpointed(self, worker: WorkerProcess) -> float:
        """Take a checkpoint of each partition, as `siltstone checkpoint now` does; return the seconds for all.

        An orderly stop takes one too, but waits no longer than ten seconds for it.
        """
        began = time.monotonic()
        for partition in range(self.plan.partitions):
            address = f"/v1/checkpoints/{partition}"
            (await worker.http.post(address, json={})).raise_for_status()
            while (made := (await worker.http.get(address)).json())["running"]:  # noqa: ASYNC110
                await asyncio.sleep(LOOK_AGAIN_SECONDS)
            if made["error"]:
                raise RuntimeError(f"no checkpoint of partition {partition}: {made['error']}")
        return time.monotonic() - began

    def _uploaded(self, before: Mapping[str, int]) -> int:
        """The bytes of new objects; no object is written twice."""
        return sum(size for name, size in self.store.sizes().items() if name not in before)

    async def rebuild(self, in_a_process: InAProcess) -> None:
        """Measure with a part of the memories and multiply: each text takes equally long to embed."""
        figures = self.figures
        count = max(min(LEAST_REBUILT, self.plan.memories), self.plan.memories // REBUILT)
        kafka = kafka_at(self.broker, "rebuild", self.plan.partitions)
        await ensure_topics(kafka)
        in_a_process("fill", *self.log_of("rebuild"), count)
        users = [names[0] for names in users_of(count, self.plan.partitions)]
        seconds = await replace(self.cluster, kafka=kafka, users=users).started(self.root / "rebuilt")
        beyond = seconds - figures["empty_start_s"]
        figures |= {
            "rebuild_measured_with": count,
            "rebuild_measured_s": round(seconds, 2),
            "rebuild_per_s": round(count / beyond),
            "rebuild_s": round(figures["empty_start_s"] + beyond * self.plan.memories / count),
        }

    async def warm(self) -> None:
        """Measure how a worker takes over a lost worker's partitions: from checkpoints, and from warm copies."""
        cluster = replace(self.cluster, store=self.store)
        for name, copies in (("takeover_s", "0"), ("warm_takeover_s", "1")):
            given = {"CHECKPOINTS__WARM": copies, "CHECKPOINTS__SECONDS": "5"}
            seconds = await cluster.lost(self.disk, self.root / name, **given)
            self.figures[name] = round(seconds, 2)
