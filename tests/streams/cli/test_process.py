"""What a command logs."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from streams.cli.process import FAUSTS, configure_logging


@pytest.fixture(autouse=True)
def _loggers_as_they_were() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    names = ("httpx", "faust", "mode", "uvicorn", "httpx2", "aiokafka", "kafka", *FAUSTS)
    levels = {name: logging.getLogger(name).level for name in names}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


def test_the_addresses_of_forwarded_requests_are_not_logged() -> None:
    """httpx logs each at INFO, with its query: a user's id is in it."""
    configure_logging("INFO")
    assert not logging.getLogger("httpx").isEnabledFor(logging.INFO)


def test_what_faust_says_of_the_tables_under_our_names_is_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    """Sixty lines at each rebalance; what we warn of there is."""
    configure_logging("INFO")
    logging.getLogger("streams.hotpath.recovery").info("+Highwater - Active----+")
    logging.getLogger("streams.hotpath.recovery").warning("the broker did not answer")
    assert capsys.readouterr().err.count("\n") == 1
