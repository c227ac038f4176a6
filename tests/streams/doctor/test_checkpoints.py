"""What the doctor finds of checkpoints: the store, their age, and whether they fit the settings and the log."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from schemas.settings import CheckpointsSettings
from streams.doctor.checkpoints import Bounds, Kept, checkpoint_findings, model_findings
from streams.doctor.finding import Finding, Outcome
from streams.models.embedding.embedding import Model
from tables.checkpoints.checkpoints import Checkpoints
from tables.checkpoints.manifest import Manifest
from tables.checkpoints.snapshot import Position
from tests.tables.checkpoints.made import content, facts, noise, snapshot, written

SETTINGS = CheckpointsSettings(url="file:///kept", seconds=100)
NOW = 1_700_000_000_000
MINUTE = 60_000


def generation(partition: int, offset: int, ago: int = MINUTE, **changes: Any) -> Manifest:
    """One whose position in the log is `offset`, `ago` milliseconds old."""
    of = facts(partition=partition, at=NOW - ago)
    of = msgspec.structs.replace(of, positions={"long-term": Position("topic", offset)}, **changes)
    return Manifest(1, of, (), ())


def found(
    kept: Kept, bounds: Bounds | None, settings: CheckpointsSettings = SETTINGS, topic_id: str = "topic"
) -> list[Finding]:
    findings = checkpoint_findings(settings, 8, kept, bounds, topic_id, NOW)
    for finding in findings:
        assert "\n" not in finding.what + finding.todo
        assert bool(finding.todo) == (finding.outcome is not Outcome.OK)
    return findings


def only(kept: Kept, bounds: Bounds | None) -> tuple[Outcome, str]:
    (finding,) = found(kept, bounds)
    return finding.outcome, finding.what


def test_without_a_store_nothing_is_amiss() -> None:
    (finding,) = found(Kept(), None, CheckpointsSettings())
    assert (finding.outcome, "checkpoints.url is not set" in finding.what) == (Outcome.OK, True)


def test_what_fits_is_told_with_its_ages() -> None:
    kept = Kept({0: [generation(0, 10), generation(0, 5, 2 * MINUTE)], 1: [generation(1, 7)]})
    for bounds in (None, {0: (5, 10), 1: (0, 7)}):
        outcome, what = only(kept, bounds)
        assert (outcome, what[:22]) == (Outcome.OK, "2 of 8 partitions have")


def test_an_old_one_is_late_only_where_the_log_has_gone_on() -> None:
    old = Kept({0: [generation(0, 10, 301_000)]})
    assert only(old, {0: (0, 10)})[0] is Outcome.OK
    outcome, what = only(old, {0: (0, 11)})
    assert (outcome, what[:60]) == (Outcome.WARNING, "partition 0: the log has grown since the newest checkpoint (")
    assert only(Kept({0: [generation(0, 10, 299_000)]}), {0: (0, 11)})[0] is Outcome.OK


def test_a_partition_with_records_and_none_is_told() -> None:
    outcome, what = only(Kept({0: [generation(0, 10)]}), {0: (0, 10), 1: (0, 3), 2: (0, 0)})
    assert (outcome, what) == (Outcome.WARNING, "partition 1: there is no checkpoint, but the log has records")


def test_a_log_that_begins_after_the_newest_has_lost_something() -> None:
    kept = Kept({0: [generation(0, 10), generation(0, 5)]})
    assert only(kept, {0: (5, 10)})[0] is Outcome.OK
    outcome, what = only(kept, {0: (6, 10)})
    assert (outcome, what) == (
        Outcome.WARNING,
        "partition 0: the log no longer reaches back to the oldest checkpoint",
    )
    outcome, what = only(kept, {0: (11, 11)})
    assert (outcome, what[:56]) == (Outcome.FAILED, "partition 0: the log begins after the newest checkpoint:")


def test_those_of_a_topic_that_was_made_anew_are_not_compared_with_it() -> None:
    kept = Kept({0: [generation(0, 10)]})
    (finding,) = found(kept, {0: (0, 3)}, topic_id="another")
    assert (finding.outcome, "recreated after the checkpoint" in finding.what) == (Outcome.WARNING, True)
    assert only(kept, {0: (0, 10)})[0] is Outcome.OK


def test_another_number_of_partitions_fails() -> None:
    outcome, what = only(Kept({0: [generation(0, 10, partitions=4)]}), None)
    assert (outcome, what) == (
        Outcome.FAILED,
        "partition 0: users are distributed over 4 partitions, but kafka.partitions is 8",
    )


def test_another_model_is_warned_of() -> None:
    kept = Kept({0: [generation(0, 10)], 1: [generation(1, 10, model="other")]})
    assert model_findings(replace(kept, generations={0: kept.generations[0]}), Model("toy", 4)) == []
    (finding,) = model_findings(kept, Model("toy", 4))
    assert finding.what == (
        "partition 1: vectors from other (4 dimensions), not from toy (4 dimensions): no worker restores them"
    )


@pytest.fixture
def store(tmp_path: Path) -> CheckpointsSettings:
    return CheckpointsSettings(url=f"file://{tmp_path / 'store'}")


def test_a_store_is_written_to_and_left_as_it_was(store: CheckpointsSettings, tmp_path: Path) -> None:
    checkpoints = Checkpoints(store.url)
    source = written(tmp_path / "source", shard__catalog_duckdb=noise(100))
    for at in (1, 2):
        checkpoints.take(snapshot(source, facts(at=NOW + at)))
    before = content(tmp_path / "store")
    kept = Kept.of(store)
    assert content(tmp_path / "store") == before
    assert {p: [one.generation for one in found] for p, found in kept.generations.items()} == {3: [2, 1]}
    (tmp_path / "store" / "3" / "manifests" / "000000000002").write_bytes(b"?")
    kept = Kept.of(store)
    assert (len(kept.generations[3]), len(kept.unreadable)) == (1, 1)
    first, *_ = found(kept, None, store)
    assert (first.outcome, "is damaged" in first.what) == (Outcome.WARNING, True)


def test_an_empty_store_is_told(store: CheckpointsSettings) -> None:
    (finding,) = found(Kept.of(store), None, store)
    assert (finding.outcome, "has no checkpoints yet" in finding.what) == (Outcome.WARNING, True)


def test_a_store_that_cannot_be_written_to_fails(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    settings = CheckpointsSettings(url=f"file://{tmp_path / 'file' / 'store'}")
    (finding,) = found(Kept.of(settings), None, settings)
    assert (finding.outcome, str(tmp_path) in finding.what) == (Outcome.FAILED, True)
