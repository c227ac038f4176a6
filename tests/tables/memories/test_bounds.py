"""A bound is never below what a user has, and only users who may have too many are counted."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from schemas.settings import LifecycleSettings, LongTermSettings
from tables.memories import bounds
from tables.memories.bounds import Bounds
from tables.memories.shard import Shard
from tests.support.making import START, axis, promotion


@pytest.mark.parametrize("limit", [1, 6, 100])
def test_a_bound_holds_whatever_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(bounds, "_USERS", 2)
    settings = LongTermSettings(max_memories_per_user=0)
    shard, counts = Shard(0, tmp_path, "toy", 8, settings, LifecycleSettings()), dict.fromkeys("uvwx", 0)
    held = shard._bounds = Bounds(shard.users, limit)
    for number in range(24):
        user = "uvvwwwx"[number % 7]
        told = promotion(f"text {number}", str(number), user=user)
        counts[user] += shard.apply([told], {told.event_id: axis(number % 8)}, START).effects().get("new", 0)
        for one, count in counts.items():
            assert count <= held.at_most(one)
            assert held.at_most(one) <= max(count, limit // 2) + count
    shard.close()


def test_a_shard_whose_users_cannot_be_counted_lets_go_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise duckdb.OutOfMemoryException("no memory")

    with monkeypatch.context() as patched:
        patched.setattr(Bounds, "_read", full)
        with pytest.raises(duckdb.OutOfMemoryException):
            Shard(0, tmp_path, "toy", 8, LongTermSettings(), LifecycleSettings())
    Shard(0, tmp_path, "toy", 8, LongTermSettings(), LifecycleSettings()).close()
