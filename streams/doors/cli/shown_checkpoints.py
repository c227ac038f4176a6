"""Descriptions of checkpoints for the tables and the JSON output of `siltstone checkpoint`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.filesize import decimal

from schemas.errors import CheckpointMismatch, DamagedCheckpoint
from schemas.times import iso
from schemas.topics import LONG_TERM
from streams.doors.cli import show
from tables.checkpoints.checkpoints import Checkpoints
from tables.checkpoints.manifest import Manifest


def generations_of(checkpoints: Checkpoints, partition: int, at: int) -> list[dict[str, Any]]:
    """Describe all checkpoints of one partition, including damaged ones, newest first. `at` is now, in epoch ms.

    The field `uploaded` is the number of bytes that the previous checkpoint did not have, or None if it is unknown.
    """
    found, earlier = list[dict[str, Any]](), None
    for number in reversed(checkpoints.numbers(partition)):
        try:
            manifest = checkpoints.read(partition, number)
        except (DamagedCheckpoint, CheckpointMismatch) as exc:
            found.append({"partition": partition, "generation": number, "problem": str(exc)})
            continue
        if manifest is None:  # the checkpoint was removed meanwhile
            continue
        known = None if earlier is None else {pack.name for pack in earlier.packs}
        new = sum(pack.length for pack in manifest.packs if pack.name not in (known or ()))
        found.append({**described(manifest, at), "uploaded": None if known is None and number > 1 else new})
        earlier = manifest
    return found[::-1]


def described(manifest: Manifest, at: int) -> dict[str, Any]:
    facts = manifest.facts
    position = facts.positions.get(LONG_TERM)
    return {
        "partition": facts.partition,
        "generation": manifest.generation,
        "at": iso(facts.at),
        "age_seconds": max(0, at - facts.at) // 1000,
        "position": None if position is None else position.offset,
        "bytes": manifest.whole,
        "model": facts.model,
        "dimension": facts.dimension,
        "partitions": facts.partitions,
        "problem": None,
    }


def row(one: dict[str, Any]) -> tuple[object, ...]:
    if one["problem"]:
        return one["partition"], one["generation"], show.plain(one["problem"])
    uploaded = one.get("uploaded")
    return (
        one["partition"],
        one["generation"],
        one["at"],
        _age(one["age_seconds"]),
        "" if one["position"] is None else one["position"],
        decimal(one["bytes"]),
        "" if uploaded is None else decimal(uploaded),
        show.plain(one["model"]),
    )


def _age(seconds: int) -> str:
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def numbered(partitions: Sequence[int]) -> str:
    return f"partition{'' if len(partitions) == 1 else 's'} {', '.join(map(str, partitions))}"
