"""What a command logs."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from streams.cli.process import configure_logging


@pytest.fixture(autouse=True)
def _loggers_as_they_were() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    names = ("httpx", "faust", "mode", "uvicorn", "httpx2", "aiokafka", "kafka", "streams.hotpath.overrides")
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
