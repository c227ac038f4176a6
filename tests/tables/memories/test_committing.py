"""A step of a commit that fails leaves what the page says, although the worker goes on and closes the shard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from schemas.errors import DataDirError
from schemas.events import Forget, LongTermEvent
from schemas.settings import LifecycleSettings, LongTermSettings
from tables.memories.committing import Commit
from tables.memories.shard import Shard
from tests.support.making import START, axis, promotion
from tests.tables.commands import event

STEPS = ("outdate", "write", "follow", "remove_vectors", "add_vectors")
OLD, GOING, NEW = (promotion(f"text {n}", f"m{n}") for n in range(3))
BATCH: list[LongTermEvent] = [NEW, event(Forget, memory_id=GOING.memory_id)]
VECTORS = {one.event_id: axis(n) for n, one in enumerate((OLD, GOING, NEW))}


def opened(folder: Path) -> Shard:
    return Shard(0, folder, "toy", 8, LongTermSettings(), LifecycleSettings())


def failing(when: Literal["before", "after"], step: Callable[[Commit], None]) -> Callable[[Commit], None]:
    def failed(commit: Commit) -> None:
        if when == "after":
            step(commit)
        raise OSError(5, "Input/output error")

    return failed


def vectors_held(shard: Shard) -> list[list[float]]:
    """The cosines of each memory with each text's vector: of GOING none is left."""
    memories = shard.memories_of("u")
    return [shard.similarities("u", axis(place), memories).tolist() for place in range(3)]


def test_the_steps_are_those_of_the_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    taken: list[str] = []

    def noting(name: str, step: Callable[[Commit], Any]) -> Callable[[Commit], None]:
        def noted(commit: Commit) -> None:
            taken.append(name)
            step(commit)

        return noted

    for name in STEPS:
        monkeypatch.setattr(Commit, name, noting(name, getattr(Commit, name)))
    shard = opened(tmp_path)
    shard.apply([OLD], VECTORS, START)
    shard.close()
    assert tuple(taken) == STEPS


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_fails_leaves_all_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, when: Literal["before", "after"]
) -> None:
    shard = opened(tmp_path)
    shard.apply([OLD, GOING], VECTORS, START, 2)
    shard.save()
    with monkeypatch.context() as patched:
        patched.setattr(Commit, step, failing(when, getattr(Commit, step)))
        with pytest.raises(OSError, match="Input/output error"):
            shard.apply(BATCH, VECTORS, START, 4)
    committed = STEPS.index(step) > 1 or (step, when) == ("write", "after")
    if committed:
        with pytest.raises(DataDirError, match="restart the worker"):
            shard.apply([event(Forget, memory_id=OLD.memory_id)], {}, START, 5)
    assert shard.position() == (4 if committed else 2)
    shard.close()

    shard = opened(tmp_path)
    assert shard.in_step()
    applied = shard.apply(BATCH, VECTORS, START, 4)
    assert (applied.repeated, len(applied.fresh)) == ((2, 0) if committed else (0, 2))
    assert shard.in_step()
    assert [one.text for one in shard.memories_of("u")] == ["text 0", "text 2"]
    assert vectors_held(shard) == [[1, 0], [0, 0], [0, 1]]
    assert [one.text for one in shard.rows.memories(shard.held("u").places)] == ["text 0", "text 2"]
    shard.close()
