"""The synchronous client is written from the asynchronous one: `make client` renews it."""

from __future__ import annotations

import runpy
from pathlib import Path

CLIENT = Path(__file__).parents[2] / "client"


def test_the_synchronous_client_is_what_the_asynchronous_one_gives() -> None:
    program = runpy.run_path(str(CLIENT / "synchronous.py"))
    for asynchronous, synchronous in program["MODULES"].items():
        written = program["synchronous"](asynchronous.read_text(encoding="utf-8"))
        assert synchronous.read_text(encoding="utf-8") == written
