"""The check that a checkpoint fits a worker's partition, models and topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tables.checkpoints.manifest import Manifest
from tables.checkpoints.snapshot import FORMAT
from tables.memories.catalog.reembedding import VectorModel


def misfit(
    manifest: Manifest,
    *,
    partition: int,
    partitions: int,
    models: Sequence[VectorModel],
    topic_ids: Mapping[str, str],
) -> str | None:
    """Return the reason why this worker cannot use a checkpoint; None if it can.

    The checkpoint's vectors must be from one of `models`. `topic_ids` has the current topic id of each log, by the
    names in `Facts.positions`. An unknown topic id ("" or missing) is not compared. If the checkpoint has no position
    in a log, the worker reads that log from its start.
    """
    facts = manifest.facts
    if facts.format > FORMAT:
        return f"a newer version wrote it (format {facts.format}, this one reads up to {FORMAT})"
    if facts.partition != partition:
        return f"it is of partition {facts.partition}, not of {partition}"
    if facts.partitions != partitions:
        return f"its users are distributed over {facts.partitions} partitions, but here over {partitions}"
    if (model := VectorModel(facts.model, facts.dimension)) not in models:
        return f"its vectors are from {model}, but here from {models[0]}"
    for name, position in facts.positions.items():
        now = topic_ids.get(name, "")
        if now and position.topic_id and now != position.topic_id:
            return (
                f"topic {name} was recreated after the checkpoint was taken (id {position.topic_id} then, {now} now)"
            )
    return None
