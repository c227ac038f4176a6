"""What every command does alike: where it asks, what it logs, and how it ends."""

from __future__ import annotations

import logging

import click
import pytest

from streams.doors.cli import cli, main
from streams.doors.cli.client import own_worker
from streams.doors.cli.process import configure_logging

pytestmark = pytest.mark.usefixtures("_like_a_command")


def test_what_nobody_foresaw_is_one_line_and_exit_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    def broken() -> None:
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr(cli.__class__, "get_command", lambda *_: broken)
    monkeypatch.setattr("sys.argv", ["siltstone", "broken"])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert ended.value.code == 1
    assert said.startswith("siltstone: unexpected error: ZeroDivisionError: division (test_main.py:")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("host", "port", "url"),
    [
        ("127.0.0.1", "8000", "http://127.0.0.1:8000"),
        ("localhost", "9001", "http://localhost:9001"),
        ("::1", "9001", "http://[::1]:9001"),
    ],
)
def test_commands_ask_the_worker_of_the_settings(
    host: str, port: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SILTSTONE_HTTP__HOST", host)
    monkeypatch.setenv("SILTSTONE_HTTP__PORT", port)
    assert own_worker() == url


def test_at_debug_the_libraries_are_heard() -> None:
    """Of what they cannot reach, too; at every other level we say that, once."""
    configure_logging("INFO")
    assert not logging.getLogger("aiokafka").isEnabledFor(logging.ERROR)
    configure_logging("DEBUG")
    assert logging.getLogger("aiokafka").isEnabledFor(logging.INFO)
    assert logging.getLogger("streams.kafka.faust.consumer").isEnabledFor(logging.DEBUG)


def test_what_the_clients_of_a_worker_complain_of_is_heard_and_its_repeats_are_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """At its own level, once: it was silenced."""
    configure_logging("INFO", serving=True)
    for node in range(3):
        logging.getLogger("aiokafka.client").error("Unable connect to node with id %s", node)
    logging.getLogger("aiokafka.client").info("of no interest")
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.endswith("ERROR aiokafka.client: Unable connect to node with id 0\n")
