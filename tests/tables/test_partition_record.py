"""The number of partitions that a data directory is of."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.errors import DataDirError, SettingsError
from schemas.settings import Settings
from streams.doctor.data import partition_findings
from streams.doctor.finding import Outcome
from streams.doors.cli import running
from tables.partition_record import record_partitions, recorded_partitions, require_partitions


def test_a_data_directory_of_which_nothing_is_noted_takes_any_number(tmp_path: Path) -> None:
    """Also one that is not there yet."""
    for folder in (tmp_path, tmp_path / "none"):
        assert recorded_partitions(folder) is None
        require_partitions(folder, 8)
        assert partition_findings(folder, 8) == []


def test_another_number_than_the_noted_one_is_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    record_partitions(tmp_path, 4)
    require_partitions(tmp_path, 4)
    assert partition_findings(tmp_path, 4) == []
    with pytest.raises(SettingsError) as refused:
        require_partitions(tmp_path, 8)
    assert str(refused.value) == (
        f"kafka.partitions is 8, but the users of {tmp_path} are distributed over 4 partitions: set "
        "kafka.partitions to 4, or choose another data directory with --data or data_dir"
    )
    (finding,) = partition_findings(tmp_path, 8)
    assert finding.outcome is Outcome.FAILED
    assert f"{finding.what}: {finding.todo}" == str(refused.value)


def test_it_is_noted_anew_where_shards_of_another_number_take_the_place_of_the_former_ones(tmp_path: Path) -> None:
    record_partitions(tmp_path, 4)
    record_partitions(tmp_path, 4)
    record_partitions(tmp_path, 8)
    assert recorded_partitions(tmp_path) == 8
    assert [path.name for path in tmp_path.iterdir()] == ["partitions"]


@pytest.mark.parametrize("written", [b"", b"four", b"\xff", b"-4"])
def test_a_record_that_is_no_number_is_told(tmp_path: Path, written: bytes) -> None:
    (tmp_path / "partitions").write_bytes(written)
    with pytest.raises(DataDirError, match="it is not a number"):
        recorded_partitions(tmp_path)
    (finding,) = partition_findings(tmp_path, 4)
    assert finding.outcome is Outcome.FAILED
    assert "remove the file" in finding.todo


@pytest.mark.slow
async def test_a_worker_of_another_number_does_not_begin(settings: Settings) -> None:
    """It says so before it looks for a broker. One of the same number notes it."""
    elsewhere = settings.kafka.model_copy(update={"partitions": 3, "bootstrap_servers": "127.0.0.1:9"})
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    async with running.started(settings):
        assert recorded_partitions(settings.data_dir) == settings.kafka.partitions
    with pytest.raises(SettingsError, match=r"kafka.partitions is 3, but the users of .* are distributed over"):
        async with running.started(settings.model_copy(update={"kafka": elsewhere})):
            pass
