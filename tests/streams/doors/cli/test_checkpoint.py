"""`siltstone checkpoint list`, `verify` and `restore`: what they say, and how they end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from streams.doors.cli import cli
from tables.checkpoints.checkpoints import Checkpoints
from tests.support.quick_commands import siltstone
from tests.tables.checkpoints.made import content, facts, noise, snapshot, written

#: 2023-11-14T22:13:20Z.
BEGUN = 1_700_000_000_000


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two generations of partition 0, one of partition 3."""
    folder = tmp_path / "store"
    monkeypatch.setenv("SILTSTONE_CHECKPOINTS__URL", f"file://{folder}")
    checkpoints = Checkpoints(f"file://{folder}", clock=lambda: 5.0)
    for partition, at in ((0, 1_000), (0, 2_000), (3, 1_500)):
        files = {"shard__catalog_duckdb": noise(600_000, seed=1) + noise(10, seed=at)}
        source = written(tmp_path / f"{partition}-{at}", **files)
        checkpoints.take(snapshot(source, facts(partition=partition, at=BEGUN + at)))
    return folder


def said(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "160"}).invoke(cli, ["checkpoint", *words])


def answered(*words: str) -> dict[str, Any]:
    result = said(*words, "--json")
    assert result.exit_code == 0, result.output
    answer: dict[str, Any] = orjson.loads(result.stdout)
    return answer


def test_a_list_has_each_generation_with_its_time_place_and_size(store: Path) -> None:
    found = answered("list")
    assert found["store"] == f"file://{store}"
    newest, oldest, other = found["checkpoints"]
    assert [(one["partition"], one["generation"]) for one in (newest, oldest, other)] == [(0, 2), (0, 1), (3, 1)]
    assert newest["at"] == "2023-11-14T22:13:22.000Z"
    assert (newest["position"], newest["model"], newest["partitions"], newest["bytes"]) == (12, "toy", 8, 600_010)
    assert newest["age_seconds"] > 10**7
    assert newest["uploaded"] < oldest["uploaded"] == oldest["bytes"]
    shown = said("list", "--partition", "3")
    assert (shown.exit_code, "600.0 kB" in shown.output, "22:13:22" in shown.output) == (0, True, False)


def test_a_damaged_manifest_is_in_the_list(store: Path) -> None:
    (store / "0" / "manifests" / "000000000002").write_bytes(b"?")
    damaged, whole, _ = answered("list")["checkpoints"]
    assert (damaged["generation"], "is damaged" in damaged["problem"], whole["problem"]) == (2, True, None)
    assert "is damaged" in said("list").output


def test_what_is_whole_is_verified(store: Path) -> None:
    assert answered("verify") == {"store": f"file://{store}", "verified": 3, "damaged": []}
    assert said("verify").output == "3 of 3 checkpoints are intact, to the last byte.\n"
    assert answered("verify", "--newest")["verified"] == 2


def test_a_flipped_byte_is_named_by_its_file_and_block(store: Path) -> None:
    newest = Checkpoints(f"file://{store}").newest(0)
    assert newest is not None
    block = newest.files[0].blocks[-1]
    pack = store / "0" / "packs" / newest.packs[block.pack].name
    held = bytearray(pack.read_bytes())
    held[block.offset] ^= 1
    pack.write_bytes(held)
    result = said("verify")
    first, last = result.stdout.splitlines()
    at = newest.files[0].length - block.length
    assert first == (
        f"partition 0, generation 2: shard/catalog.duckdb at byte {at}: its checksum differs (pack {pack.name})"
    )
    assert (result.exit_code, last) == (1, "2 of 3 checkpoints are intact, to the last byte.")
    result = said("verify", "--json")
    (damage,) = orjson.loads(result.stdout)["damaged"]
    assert (result.exit_code, damage["file"], damage["offset"]) == (1, "shard/catalog.duckdb", at)
    pack.unlink()
    assert "its pack is missing" in said("verify").stdout


def test_a_damaged_manifest_fails_the_verification(store: Path) -> None:
    (store / "0" / "manifests" / "000000000002").write_bytes(b"?")
    result = said("verify")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (
        1,
        "partition 0, generation 2: its manifest has no valid header",
    )


@pytest.mark.usefixtures("_like_a_command")
def test_a_directory_is_restored_and_says_what_a_worker_needs(store: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shown = said("restore", "--data", str(data))
    assert shown.exit_code == 0, shown.output
    assert sorted(content(data)) == ["partitions", "shards/0/catalog.duckdb", "shards/3/catalog.duckdb"]
    assert "There is no checkpoint of partitions 1, 2, 4, 5, 6, 7" in shown.output
    assert "A worker needs kafka.partitions: 8, and the embedding toy (4 dimensions)." in shown.output
    older = tmp_path / "older"
    found = answered("restore", "--data", str(older), "--at", "2023-11-14T22:13:21.500Z")
    assert [(one["partition"], one["generation"]) for one in found["restored"]] == [(0, 1), (3, 1)]
    assert (found["partitions"], found["damaged"]) == (8, [])
    part = tmp_path / "part"
    answered("restore", "--data", str(part), "--at", str(BEGUN + 1_500), "--partition", "3")
    assert sorted(content(part)) == ["partitions", "shards/3/catalog.duckdb"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("restore", "--data", "{data}"), "it is not empty"),
        (("restore", "--data", "new", "--at", "2023-01-01T00:00:00Z"), "the oldest checkpoint at file://"),
        (("list", "--partition", "5"), "there is no checkpoint of partition 5 at"),
        (("list", "--store", "ftp://x"), "--store: "),
        (("verify", "--store", "file://{data}"), "there is no checkpoint at file://"),
    ],
)
async def test_what_cannot_be_done_is_one_line_and_exit_1(
    store: Path, tmp_path: Path, words: tuple[str, ...], line: str
) -> None:
    data = written(tmp_path / "data", mine_txt=b"mine")
    result = await siltstone("checkpoint", *(word.format(data=data) for word in words))
    assert (result.returncode, result.stderr.count("\n"), result.stdout) == (1, 1, "")
    assert line in result.stderr


async def test_without_a_store_the_setting_is_named() -> None:
    result = await siltstone("checkpoint", "list")
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert "checkpoints.url: is not set" in result.stderr


@pytest.mark.parametrize("words", [(), ("restore",), ("restore", "--data", "x", "--at", "soon"), ("list", "x")])
def test_wrong_usage_is_exit_2(words: tuple[str, ...]) -> None:
    assert said(*words).exit_code == 2
