"""Two workers that both believe that the partition is theirs."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from schemas.errors import Fenced
from tables.checkpoints.checkpoints import Checkpoints, Taken
from tables.checkpoints.store import Content, Store
from tests.tables.checkpoints.made import content, facts, noise, snapshot, written


def states(folder: Path, count: int = 2) -> list[Path]:
    return [written(folder / f"state-{number}", a=noise(9, number), shared=b"1") for number in range(count)]


def together(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """All takers wait for each other before their first manifest is put."""
    barrier = threading.Barrier(count)
    waited = threading.local()
    create = Store.create

    def waiting(self: Store, name: str, content: Content) -> bool:
        if "/manifests/" in name and not hasattr(waited, "once"):
            waited.once = True
            barrier.wait(10)
        return create(self, name, content)

    monkeypatch.setattr(Store, "create", waiting)


@pytest.mark.parametrize("round_", range(5))
def test_of_two_at_once_the_newest_is_the_higher_epochs(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, round_: int
) -> None:
    """The lower one comes first, and is followed; or it is fenced."""
    together(monkeypatch, 2)
    folders = states(tmp_path)

    def take(epoch: int) -> Taken | Fenced | None:
        try:
            return Checkpoints(url).take(snapshot(folders[epoch], facts(epoch=epoch)))
        except Fenced as exc:
            return exc

    with ThreadPoolExecutor(2) as pool:
        lower, higher = pool.map(take, range(2))
    checkpoints = Checkpoints(url)
    newest = checkpoints.newest(3)
    assert newest is not None
    assert isinstance(higher, Taken)
    assert newest.facts.epoch == 1
    assert newest.generation == higher.generation
    assert isinstance(lower, Fenced) or lower == (1, lower.uploaded, lower.whole)  # type: ignore[union-attr]
    checkpoints.restore(newest, tmp_path / "restored")
    assert content(tmp_path / "restored") == content(folders[1])
    with pytest.raises(Fenced):
        checkpoints.take(snapshot(folders[0], facts(epoch=0)))


def test_of_many_of_one_epoch_each_has_a_generation_of_its_own(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together(monkeypatch, 4)
    folders = states(tmp_path, 4)
    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(lambda folder: Checkpoints(url).take(snapshot(folder)), folders))
    assert sorted(one.generation for one in taken if one is not None) == [1, 2, 3, 4]
    checkpoints = Checkpoints(url, keep=9)
    for manifest in checkpoints.generations(3):
        assert checkpoints.verify(manifest) == []


def test_takes_of_one_process_come_one_after_the_other(url: str, tmp_path: Path) -> None:
    checkpoints = Checkpoints(url, keep=2)
    folders = states(tmp_path, 4)

    def take(folder: Path) -> Taken | None:
        taken = checkpoints.take(snapshot(folder))
        checkpoints.expire(3)
        return taken

    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(take, folders))
    assert sorted(one.generation for one in taken if one is not None) == [1, 2, 3, 4]
    for manifest in checkpoints.generations(3):
        assert checkpoints.verify(manifest) == []


def test_whoever_comes_so_late_that_its_number_is_free_again_is_fenced_and_leaves_none(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its successor has taken generations 2 and 3, and removed 2, before it puts its own generation 2."""
    folders = states(tmp_path)
    Checkpoints(url).take(snapshot(folders[0], facts(epoch=1)))
    create = Store.create
    late = Checkpoints(url)

    def create_late(self: Store, name: str, content: Content) -> bool:
        if self is late._store and "/manifests/" in name:
            successor = Checkpoints(url, keep=1)
            for _ in range(2):
                successor.take(snapshot(folders[1], facts(epoch=2)))
            successor.expire(3)
        return create(self, name, content)

    monkeypatch.setattr(Store, "create", create_late)
    with pytest.raises(Fenced):
        late.take(snapshot(folders[0], facts(epoch=1)))
    assert Checkpoints(url).numbers(3) == [3]


def test_an_answer_that_was_lost_does_not_make_two_generations(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest is there, and the client, which did not hear of it, put it again and was refused."""
    create = Store.create
    monkeypatch.setattr(Store, "create", lambda *args: create(*args) and create(*args))
    taken = Checkpoints(url).take(snapshot(states(tmp_path)[0]))
    assert taken is not None
    assert taken.generation == 1
    assert Checkpoints(url).numbers(3) == [1]
