"""The synchronous client is written from the asynchronous one: `make client` renews it."""

from __future__ import annotations

import runpy
from pathlib import Path

CLIENT = Path(__file__).parents[2] / "client"


def test_the_synchronous_client_is_what_the_asynchronous_one_gives() -> None:
    program = runpy.run_path(str(CLIENT / "synchronous.py"))
    for source, file in program["WRITTEN"].items():
        written = program["synchronous"]((program["FOLDER"] / source).read_text(encoding="utf-8"), file)
        assert (program["FOLDER"] / file).read_text(encoding="utf-8") == written
