"""The doctor's check of the store of checkpoints.

Is the store reachable and writable, and do its checkpoints match the settings and the log?
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import aiokafka
from aiokafka.admin import AIOKafkaAdminClient

from schemas.errors import CheckpointMismatch, DamagedCheckpoint, StoreUnavailable
from schemas.settings import CheckpointsSettings, KafkaSettings
from schemas.times import iso
from schemas.topics import LONG_TERM, Topics
from streams.doctor.finding import Finding, failed, ok, warning
from streams.kafka.clients.broker import client_options, consumer_options
from streams.kafka.topics.ids import GONE, identities
from streams.models.embedding.embedding import Model
from tables.checkpoints.checkpoints import Checkpoints
from tables.checkpoints.manifest import Manifest
from tables.checkpoints.store import Patience, Store

CHECK: Final = "checkpoints"
SILENT: Final = "check the store, and its address and credentials in the environment"
#: Short time limits, so that the doctor does not wait long for a slow store.
PATIENCE: Final = Patience(answer=5.0, retries=1, all=8.0)
#: The check warns if the newest checkpoint is older than `checkpoints.seconds` times this number.
LATE: Final = 3

Bounds = Mapping[int, tuple[int, int]]
"""For each partition of the event log: the offset of the oldest record, and the offset after the newest record."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The checkpoints in the store.

    `generations` has the manifests of each partition, newest first. `unreadable` has an error for each checkpoint
    that cannot be read. `away` is the error if the store does not answer, otherwise None.
    """

    generations: Mapping[int, Sequence[Manifest]] = field(default_factory=dict)
    unreadable: Sequence[str] = ()
    away: StoreUnavailable | None = None

    @classmethod
    def of(cls, settings: CheckpointsSettings) -> Kept:
        """Write, read and remove a probe object, then read the manifests of all checkpoints. Blocks the thread."""
        if not settings.url:
            return cls()
        found: dict[int, list[Manifest]] = {}
        unreadable = []
        try:
            _write_something(Store(settings.url, PATIENCE))
            checkpoints = Checkpoints(settings.url, patience=PATIENCE)
            for partition in checkpoints.partitions():
                for number in checkpoints.numbers(partition):
                    try:
                        manifest = checkpoints.read(partition, number)
                    except (DamagedCheckpoint, CheckpointMismatch) as exc:
                        unreadable.append(str(exc))
                        continue
                    if manifest is not None:
                        found.setdefault(partition, []).append(manifest)
        except StoreUnavailable as exc:
            return cls(away=exc)
        return cls(found, unreadable)

    @property
    def newest(self) -> Mapping[int, Manifest]:
        return {partition: found[0] for partition, found in self.generations.items()}


def checkpoint_findings(
    settings: CheckpointsSettings, partitions: int, kept: Kept, bounds: Bounds | None, topic_id: str, now: int
) -> list[Finding]:
    """Compare the checkpoints with the settings and with the topic `long-term`. `now` is epoch ms.

    `bounds` has the offsets of `long-term`, or is None if no broker answers. `topic_id` is the id of `long-term`, or
    empty if the id is unknown.
    """
    if not settings.url:
        return [
            ok(CHECK, "no checkpoints are taken: checkpoints.url is not set; a lost disk is restored from the log")
        ]
    if kept.away is not None:
        return [failed(CHECK, f"{kept.away.url}: {kept.away.reason}", SILENT)]
    found = [warning(CHECK, what, "run `siltstone checkpoint verify` for details") for what in kept.unreadable]
    if not kept.generations:
        todo = "a worker takes the first one; to take it now, run `siltstone checkpoint now`"
        return [*found, warning(CHECK, "the store is reachable and writable, but has no checkpoints yet", todo)]
    found += _other_settings(partitions, kept)
    if bounds is not None:
        found += _late(settings, kept, bounds, now) + _beside_the_log(kept, bounds, topic_id)
    if found:
        return found
    newest = [one.facts.at for one in kept.newest.values()]
    oldest = min(found[-1].facts.at for found in kept.generations.values())
    what = f"{len(newest)} of {partitions} partitions have checkpoints; the newest of each are from "
    return [ok(CHECK, f"{what}{iso(min(newest))} to {iso(max(newest))}, the oldest one is from {iso(oldest)}")]


def model_findings(kept: Kept, model: Model) -> list[Finding]:
    """Report partitions whose newest checkpoint has vectors from another embedding model than `model`."""
    others = sorted(
        partition
        for partition, one in kept.newest.items()
        if (one.facts.model, one.facts.dimension) != (model.name, model.dimension)
    )
    if not others:
        return []
    facts = kept.newest[others[0]].facts
    return [
        warning(
            CHECK,
            f"{_numbered(others)}: vectors from {facts.model} ({facts.dimension} dimensions), not from {model.name} "
            f"({model.dimension} dimensions): no worker restores them",
            "set `embedding` back, or after `siltstone reembed` run `siltstone checkpoint now`",
        )
    ]


async def log_bounds(kafka: KafkaSettings) -> tuple[Bounds, str]:
    """Return the offsets (`Bounds`) and the topic id of `long-term`. Raises `KafkaError`.

    The id is empty if the broker reports none.
    """
    topic = Topics.with_prefix(kafka.topic_prefix).long_term
    admin = AIOKafkaAdminClient(**client_options(kafka))
    try:
        await admin.start()
        identity = (await identities(admin, [topic])).get(topic, GONE)
    finally:
        await admin.close()
    if not identity.partitions:
        return {}, ""
    consumer = aiokafka.AIOKafkaConsumer(**consumer_options(kafka), group_id=None, enable_auto_commit=False)
    try:
        await consumer.start()
        tps = [aiokafka.TopicPartition(topic, partition) for partition in range(identity.partitions)]
        consumer.assign(tps)
        starts, ends = await consumer.beginning_offsets(tps), await consumer.end_offsets(tps)
    finally:
        await consumer.stop()
    return {tp.partition: (starts[tp], ends[tp]) for tp in tps}, str(identity.id or "")


def _write_something(store: Store) -> None:
    name = f"doctor/{uuid.uuid4()}"
    store.create(name, b"harmless")
    store.read(name)
    store.remove(name)


def _other_settings(partitions: int, kept: Kept) -> list[Finding]:
    others = sorted(p for p, one in kept.newest.items() if one.facts.partitions != partitions)
    if not others:
        return []
    there = kept.newest[others[0]].facts.partitions
    what = f"{_numbered(others)}: users are distributed over {there} partitions, but kafka.partitions is {partitions}"
    return [failed(CHECK, what, f"set kafka.partitions to {there}, or checkpoints.url to another folder")]


def _late(settings: CheckpointsSettings, kept: Kept, bounds: Bounds, now: int) -> list[Finding]:
    """Report partitions whose newest checkpoint is too old, and partitions without a checkpoint.

    A partition is reported only if its log has records that are in no checkpoint.
    """
    late = sorted(
        partition
        for partition, one in kept.newest.items()
        if partition in bounds
        and _position(one) < bounds[partition][1]
        and now - one.facts.at > LATE * settings.seconds * 1000
    )
    never = sorted(p for p, (start, end) in bounds.items() if end > start and p not in kept.generations)
    found = []
    if late:
        at = min(kept.newest[partition].facts.at for partition in late)
        what = f"{_numbered(late)}: the log has grown since the newest checkpoint ({iso(at)})"
        found.append(warning(CHECK, what, "see /readyz and the log of the workers for the cause"))
    if never:
        todo = "a worker takes the first one; to take it now, run `siltstone checkpoint now`"
        found.append(warning(CHECK, f"{_numbered(never)}: there is no checkpoint, but the log has records", todo))
    return found


def _beside_the_log(kept: Kept, bounds: Bounds, topic_id: str) -> list[Finding]:
    """Report checkpoints from which a worker could not continue with the log.

    Either the topic was deleted and recreated after the checkpoint, or the log has lost records after the checkpoint.
    """
    found = []
    another = sorted(
        partition
        for partition, one in kept.newest.items()
        if topic_id
        and LONG_TERM in one.facts.positions
        and one.facts.positions[LONG_TERM].topic_id not in ("", topic_id)
    )
    if another:
        what = f"{_numbered(another)}: of an earlier topic {LONG_TERM}, which was recreated after the checkpoint"
        found.append(warning(CHECK, what, "run `siltstone checkpoint now` when the workers have read the new topic"))
    same = {p: found for p, found in kept.generations.items() if p in bounds and p not in another}
    gap = sorted(p for p, generations in same.items() if _position(generations[0]) < bounds[p][0])
    behind = sorted(
        p for p, generations in same.items() if p not in gap and _position(generations[-1]) < bounds[p][0]
    )
    if gap:
        missing = "the log begins after the newest checkpoint: the events between them are only on the workers' disks"
        what = f"{_numbered(gap)}: {missing}"
        found.append(failed(CHECK, what, f"run `siltstone checkpoint now`, and give {LONG_TERM} a longer retention"))
    if behind:
        what = f"{_numbered(behind)}: the log no longer reaches back to the oldest checkpoint"
        todo = f"give {LONG_TERM} a longer retention, or set a smaller checkpoints.keep"
        found.append(warning(CHECK, what, todo))
    return found


def _position(manifest: Manifest) -> int:
    position = manifest.facts.positions.get(LONG_TERM)
    return 0 if position is None else position.offset


def _numbered(partitions: Sequence[int]) -> str:
    """Return a text that names the partitions, such as `partition 3` or `partitions 0, 1, 2 and 5 more`."""
    shown = ", ".join(map(str, partitions[:3]))
    more = f" and {len(partitions) - 3} more" if len(partitions) > 3 else ""
    return f"partition{'' if len(partitions) == 1 else 's'} {shown}{more}"
