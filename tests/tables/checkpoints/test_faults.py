"""What stores and disks do to checkpoints: damaged, closed, full, busy, slow, gone, killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from schemas.errors import (
    CheckpointError,
    CheckpointMismatch,
    DamagedCheckpoint,
    DataDirError,
    SnapshotChanged,
    StoreFull,
    StoreMissing,
    StoreRefused,
    StoreUnavailable,
)
from tables.checkpoints.checkpoints import Checkpoints
from tables.checkpoints.generations import Generations
from tables.checkpoints.store import Patience
from tests.support.object_store import SECRET, Answers, Door
from tests.tables.checkpoints.made import content, noise, snapshot, written

IMPATIENT = Patience(answer=2.0, retries=1, all=3.0)
MEGABYTE = 1_000_000


def state(folder: Path, seed: int = 0) -> Path:
    return written(
        folder / f"state-{seed}", shard__catalog_duckdb=noise(MEGABYTE, seed), windows__1_sst=noise(9, seed)
    )


def objects(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


DAMAGES: list[Callable[[Path], None]] = [flipped, truncated, emptied, Path.unlink]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def checkpoints(store: Path) -> Checkpoints:
    return Checkpoints(f"file://{store}")


class TestDamage:
    """Two generations, the second of which has a damaged object."""

    @pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
    def test_a_damaged_pack_is_found_and_the_generation_before_it_is_restored(
        self, checkpoints: Checkpoints, store: Path, tmp_path: Path, damage: Callable[[Path], None]
    ) -> None:
        checkpoints.take(snapshot(state(tmp_path)))
        before = set(objects(store))
        checkpoints.take(snapshot(state(tmp_path, 1)))
        (pack,) = [path for path in set(objects(store)) - before if path.parent.name == "packs"]
        damage(pack)
        newest, older = checkpoints.generations(3)
        with pytest.raises(DamagedCheckpoint, match="checkpoint 2 of partition 3 is damaged") as raised:
            checkpoints.restore(newest, tmp_path / "restored")
        assert raised.value.pack == pack.name
        assert {path.name for path in tmp_path.iterdir()} == {"store", "state-0", "state-1"}
        checkpoints.restore(older, tmp_path / "restored")
        assert content(tmp_path / "restored") == content(tmp_path / "state-0")
        assert checkpoints.verify(older) == []

    def test_verifying_says_which_file_and_where(self, checkpoints: Checkpoints, store: Path, tmp_path: Path) -> None:
        checkpoints.take(snapshot(state(tmp_path)))
        (pack,) = (store / "3" / "packs").iterdir()
        flipped(pack)  # byte 500,004
        manifest = checkpoints.newest(3)
        assert manifest is not None
        seen: list[tuple[int, int]] = []
        (damage,) = checkpoints.verify(manifest, lambda done, whole: seen.append((done, whole)))
        assert damage == ("shard/catalog.duckdb", 12_288 + 262_144, pack.name, "its checksum differs")
        assert seen[-1] == (MEGABYTE + 9, MEGABYTE + 9)

    @pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
    def test_a_damaged_manifest_is_passed_over(
        self, checkpoints: Checkpoints, store: Path, tmp_path: Path, damage: Callable[[Path], None]
    ) -> None:
        for seed in range(2):
            checkpoints.take(snapshot(state(tmp_path, seed)))
        damage(store / "3" / "manifests" / "000000000002")
        newest = checkpoints.newest(3)
        assert newest is not None
        assert newest.generation == 1
        taken = checkpoints.take(snapshot(state(tmp_path, 1)))
        assert taken is not None
        assert taken.generation == (2 if damage is Path.unlink else 3)

    def test_every_byte_of_a_manifest_counts(self, checkpoints: Checkpoints, store: Path, tmp_path: Path) -> None:
        checkpoints.take(snapshot(written(tmp_path / "state", a=b"1")))
        path = store / "3" / "manifests" / "000000000001"
        sound = path.read_bytes()
        for place in range(len(sound)):
            path.write_bytes(sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])
            with pytest.raises(CheckpointError):
                checkpoints.read(3, 1)

    @pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
    def test_a_pack_that_all_generations_share_is_read_again_and_mended(
        self, checkpoints: Checkpoints, store: Path, tmp_path: Path, damage: Callable[[Path], None]
    ) -> None:
        """While the disk has what is in it: once that is lost, no generation would be whole."""
        before = state(tmp_path)
        checkpoints.take(snapshot(before))
        (pack,) = (store / "3" / "packs").iterdir()
        damage(pack)
        written(before, windows__2_sst=noise(9, 2))
        checkpoints.take(snapshot(before))
        newest = checkpoints.newest(3)
        assert newest is not None
        assert checkpoints.verify(newest) == []
        checkpoints.restore(newest, tmp_path / "restored")
        assert content(tmp_path / "restored") == content(before)

    def test_each_pack_is_read_in_its_turn(
        self, checkpoints: Checkpoints, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One a generation; of a handful all of them within some dozens."""
        read, is_sound = list[str](), Generations.is_sound

        def noted(generations: Generations, name: str) -> bool:
            read.append(name)
            return is_sound(generations, name)

        monkeypatch.setattr(Generations, "is_sound", noted)
        parts = {f"windows__{n}_sst": noise(9, n) for n in range(5)}
        folder = tmp_path / "state"
        for name, part in parts.items():
            checkpoints.take(snapshot(written(folder, **{name: part})))
        newest = checkpoints.newest(3)
        assert newest is not None
        assert len(newest.packs) == 5
        assert len(read) == 4
        for n in range(60):
            checkpoints.take(snapshot(written(folder, shard__catalog_duckdb=noise(9, 100 + n))))
        assert {pack.name for pack in newest.packs} <= set(read)
        assert len(read) == 64

    @pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
    def test_what_was_found_damaged_is_put_again_by_the_next_take(
        self, checkpoints: Checkpoints, store: Path, tmp_path: Path, damage: Callable[[Path], None]
    ) -> None:
        checkpoints.take(snapshot(state(tmp_path)))
        (pack,) = (store / "3" / "packs").iterdir()
        damage(pack)
        newest = checkpoints.newest(3)
        assert newest is not None
        assert checkpoints.verify(newest)
        checkpoints.take(snapshot(state(tmp_path)))
        newest = checkpoints.newest(3)
        assert newest is not None
        assert checkpoints.verify(newest) == []
        checkpoints.restore(newest, tmp_path / "restored")

    def test_a_newer_version_is_not_read(self, checkpoints: Checkpoints, store: Path, tmp_path: Path) -> None:
        checkpoints.take(snapshot(state(tmp_path)))
        path = store / "3" / "manifests" / "000000000001"
        path.write_bytes(path.read_bytes().replace(b"checkpoint 1 ", b"checkpoint 2 ", 1))
        with pytest.raises(CheckpointMismatch, match="a newer version wrote it"):
            checkpoints.newest(3)
        with pytest.raises(CheckpointMismatch, match="a newer version wrote it"):
            checkpoints.take(snapshot(state(tmp_path)))


class TestDoors:
    """An S3 server that does not do what it should."""

    @pytest.mark.parametrize(
        ("answers", "error"),
        [
            (Answers.CLOSED, StoreRefused),
            (Answers.BUSY, StoreUnavailable),
            (Answers.FULL, StoreFull),
            (Answers.NONE, StoreUnavailable),
        ],
        ids=lambda value: getattr(value, "name", None) or value.__name__,
    )
    def test_a_take_says_what_is_wrong_and_the_next_one_goes_on(
        self, s3_url: str, door: Door, tmp_path: Path, answers: Answers, error: type[StoreUnavailable]
    ) -> None:
        checkpoints = Checkpoints(s3_url, patience=IMPATIENT)
        assert checkpoints.take(snapshot(state(tmp_path))) is not None
        door.answers, door.methods = answers, frozenset({"PUT"})
        with pytest.raises(StoreUnavailable) as raised:
            checkpoints.take(snapshot(state(tmp_path, 1)))
        assert type(raised.value) is error
        assert_no_secret(raised.value)
        door.answers = Answers.AS_THEY_ARE
        newest = checkpoints.newest(3)
        assert newest is not None
        assert newest.generation == 1
        assert checkpoints.take(snapshot(state(tmp_path, 1))) is not None

    def test_a_restore_that_is_refused_leaves_nothing(self, s3_url: str, door: Door, tmp_path: Path) -> None:
        checkpoints = Checkpoints(s3_url, patience=IMPATIENT)
        checkpoints.take(snapshot(state(tmp_path)))
        newest = checkpoints.newest(3)
        assert newest is not None
        door.answers = Answers.BUSY
        with pytest.raises(StoreUnavailable):
            checkpoints.restore(newest, tmp_path / "restored")
        assert [path.name for path in tmp_path.iterdir()] == ["state-0"]

    def test_a_busy_store_is_asked_again(self, s3_url: str, door: Door, tmp_path: Path) -> None:
        checkpoints = Checkpoints(s3_url, patience=Patience(answer=2.0, retries=4, all=20.0))
        with asked_twice(door):
            assert checkpoints.take(snapshot(state(tmp_path))) is not None

    def test_a_store_that_does_not_answer_in_time(self, s3_url: str, door: Door, tmp_path: Path) -> None:
        checkpoints = Checkpoints(s3_url, patience=Patience(answer=0.3, retries=1, all=1.0))
        door.seconds = 1.0
        with pytest.raises(StoreUnavailable, match="no answer"):
            checkpoints.take(snapshot(state(tmp_path)))

    def test_there_is_no_such_bucket(self, door: Door, tmp_path: Path) -> None:
        checkpoints = Checkpoints("s3://nobody-made-it/prefix", patience=IMPATIENT)
        with pytest.raises(StoreMissing, match="create it, or correct"):
            checkpoints.take(snapshot(state(tmp_path)))
        with pytest.raises(StoreMissing):
            checkpoints.read(3, 1)

    def test_nobody_is_at_the_address(self, monkeypatch: pytest.MonkeyPatch, door: Door) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        with pytest.raises(StoreUnavailable, match="no answer"):
            Checkpoints("s3://bucket/prefix", patience=IMPATIENT).newest(3)

    def test_a_password_in_the_url_is_not_shown(self) -> None:
        assert Checkpoints(f"s3://me:{SECRET}@bucket/prefix").url == "s3://bucket/prefix"


@contextmanager
def asked_twice(door: Door) -> Iterator[None]:
    """The first request is refused with 503, and all after it are handed on."""
    door.answers = Answers.BUSY
    listed = threading.Event()

    def open_again() -> None:
        while not listed.wait(0.01):
            if door.requests:
                door.answers = Answers.AS_THEY_ARE
                return

    opener = threading.Thread(target=open_again)
    opener.start()
    try:
        yield
    finally:
        listed.set()
        opener.join()
    assert door.requests[0][:2] == door.requests[1][:2]


def assert_no_secret(exc: BaseException) -> None:
    assert SECRET not in str(exc)
    assert exc.__cause__ is None
    assert exc.__context__ is None or exc.__suppress_context__


class TestDisks:
    """A folder as the store, and the folder that is restored to."""

    def test_a_full_disk_keeps_the_generation_before(self, tmp_path: Path, store: Path) -> None:
        checkpoints = Checkpoints(f"file://{store}")
        checkpoints.take(snapshot(state(tmp_path)))
        before = objects(store)
        ended = in_child(
            f"""
            from tests.tables.checkpoints.made import snapshot
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))
            Checkpoints("file://{store}").take(snapshot(Path("{state(tmp_path, 1)}")))
            """
        )
        assert "StoreFull" in ended.stderr
        assert objects(store) == before
        assert checkpoints.take(snapshot(state(tmp_path, 1))) is not None

    def test_a_full_disk_has_nothing_restored(self, checkpoints: Checkpoints, tmp_path: Path, store: Path) -> None:
        checkpoints.take(snapshot(state(tmp_path)))
        ended = in_child(
            f"""
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))
            checkpoints = Checkpoints("file://{store}")
            checkpoints.restore(checkpoints.newest(3), Path("{tmp_path}/restored"))
            """
        )
        assert "DataDirError" in ended.stderr
        assert sorted(path.name for path in tmp_path.iterdir()) == ["state-0", "store"]

    def test_a_folder_with_files_is_not_replaced(self, checkpoints: Checkpoints, tmp_path: Path) -> None:
        checkpoints.take(snapshot(state(tmp_path)))
        newest = checkpoints.newest(3)
        assert newest is not None
        written(tmp_path / "restored", mine=b"1")
        with pytest.raises(DataDirError):
            checkpoints.restore(newest, tmp_path / "restored")
        assert content(tmp_path / "restored") == {"mine": b"1"}

    def test_a_file_that_becomes_shorter_gives_no_checkpoint(
        self, checkpoints: Checkpoints, store: Path, tmp_path: Path
    ) -> None:
        taken = snapshot(state(tmp_path))
        truncated(tmp_path / "state-0" / "shard" / "catalog.duckdb")
        with pytest.raises(SnapshotChanged, match="changed while"):
            checkpoints.take(taken)
        assert checkpoints.newest(3) is None


class TestKilled:
    """A process that is killed (SIGKILL) at any of its writes leaves what the next one can use."""

    @pytest.mark.slow
    def test_while_it_uploads(self, checkpoints: Checkpoints, tmp_path: Path, store: Path) -> None:
        """Killed before its first object, its second, …: the newest generation is sound each time."""
        sizes = {}
        for points in range(1, 8):
            folder = state(tmp_path, points)
            ended = in_child(
                f"""
                from tables.checkpoints import taking
                from tests.tables.checkpoints.made import snapshot
                taking.PACK_BYTES = 300_000
                killed_at({points}, Store, "create")
                Checkpoints("file://{store}").take(snapshot(Path("{folder}")))
                """
            )
            newest = checkpoints.newest(3)
            sizes[points] = ended.returncode
            if newest is not None:
                assert checkpoints.verify(newest) == []
        assert set(sizes.values()) == {0, -signal.SIGKILL}
        newest = checkpoints.newest(3)
        assert newest is not None
        checkpoints.restore(newest, tmp_path / "restored")
        assert content(tmp_path / "restored") == content(state(tmp_path, 7))

    def test_while_it_restores(self, checkpoints: Checkpoints, tmp_path: Path, store: Path) -> None:
        checkpoints.take(snapshot(state(tmp_path)))
        ended = in_child(
            f"""
            from tables.checkpoints import restoring
            restoring.FETCH_BYTES = 300_000
            killed_at(3, Store, "read_range")
            checkpoints = Checkpoints("file://{store}")
            checkpoints.restore(checkpoints.newest(3), Path("{tmp_path}/restored"))
            """
        )
        assert ended.returncode == -signal.SIGKILL
        assert not (tmp_path / "restored").exists()
        assert (tmp_path / "restored.restoring").exists()
        newest = checkpoints.newest(3)
        assert newest is not None
        checkpoints.restore(newest, tmp_path / "restored")
        assert content(tmp_path / "restored") == content(tmp_path / "state-0")
        assert not (tmp_path / "restored.restoring").exists()

    def test_what_an_interrupted_take_has_put_does_not_travel_again(
        self, s3_url: str, door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tables.checkpoints.taking.PACK_BYTES", 300_000)
        checkpoints = Checkpoints(s3_url, patience=IMPATIENT)
        door.answers, door.methods, door.first = Answers.CLOSED, frozenset({"PUT"}), 2
        with pytest.raises(StoreRefused):
            checkpoints.take(snapshot(state(tmp_path)))
        door.answers = Answers.AS_THEY_ARE
        door.requests.clear()
        taken = checkpoints.take(snapshot(state(tmp_path)))
        assert taken is not None
        sent = sum(length for method, path, length in door.requests if method == "PUT")
        assert taken.uploaded == sent
        assert sent < MEGABYTE / 2


#: Of the project: where its modules are found.
ROOT = Path(__file__).resolve().parents[3]


def in_child(code: str) -> subprocess.CompletedProcess[str]:
    """Run it in a process of its own, to its end."""
    lines = code.strip("\n").splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip())
    return subprocess.run(
        [sys.executable, "-c", PREAMBLE + "\n".join(line[indent:] for line in lines)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=ROOT,
    )


PREAMBLE = """
import os, resource, signal
from pathlib import Path
from tables.checkpoints.checkpoints import Checkpoints
from tables.checkpoints.store import Store

def killed_at(count, owner, name):
    calls, whole = [], getattr(owner, name)
    def method(*args):
        calls.append(None)
        if len(calls) >= count:
            os.kill(os.getpid(), signal.SIGKILL)
        return whole(*args)
    setattr(owner, name, method)

"""
