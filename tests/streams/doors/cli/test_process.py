"""What a command logs, and for whom it writes."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from streams.doors.cli import cli
from streams.doors.cli.process import configure_logging
from tests.support.untouched import umask

pytestmark = pytest.mark.usefixtures("_like_a_command")


def test_the_addresses_of_forwarded_requests_are_not_logged() -> None:
    """httpx logs each at INFO, with its query: a user's id is in it."""
    configure_logging("INFO")
    assert not logging.getLogger("httpx").isEnabledFor(logging.INFO)


def test_what_faust_says_of_the_tables_under_our_names_is_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    """Sixty lines at each rebalance; what we warn of there is."""
    configure_logging("INFO")
    logging.getLogger("streams.kafka.faust.recovery").info("+Highwater - Active----+")
    logging.getLogger("streams.kafka.faust.recovery").warning("the broker did not answer")
    assert capsys.readouterr().err.count("\n") == 1


class Begun(Exception):
    """A command begins to write."""


@pytest.mark.parametrize(
    ("words", "begin"),
    [
        (("worker", "--data"), "streams.doors.cli.worker.serve"),
        (("dev", "--data"), "streams.doors.cli.dev.embedded_broker"),
        (("demo", "--data"), "streams.doors.cli.demo.embedded_broker"),
        (("rebuild-index", "--data"), "streams.doors.cli.shard_files.catalogs"),
        (("checkpoint", "restore", "--store", "{}", "--data"), "streams.doors.cli.checkpoint.restore_directory"),
    ],
)
@pytest.mark.parametrize(("mode", "expected"), [(0o755, 0o077), (0o750, 0o027), (0o2770, 0o007)])
def test_a_command_writes_for_those_who_were_let_into_the_data_directory(
    words: tuple[str, ...], begin: str, mode: int, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(mode)
    found: list[int] = []

    def begun(*_: object, **__: object) -> None:
        found.append(umask())
        raise Begun

    monkeypatch.setattr(begin, begun)
    monkeypatch.setattr("streams.doors.cli.checkpoint.choice", lambda *_: None)
    os.umask(0o022)
    result = CliRunner().invoke(cli, [*(word.format(tmp_path.as_uri()) for word in words), str(data)])
    assert isinstance(result.exception, Begun), result.output
    assert found == [expected]
