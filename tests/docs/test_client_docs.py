"""The client's page does what it says: its blocks run one after the other, beside a worker."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

from schemas.settings import Settings
from siltstone_client import Memory, errors
from streams.doors.cli import running

#: The blocks about agent frameworks run where these are: tests/adapters/test_docs.py.
PAGE = (Path(__file__).parents[2] / "client" / "README.md").read_text(encoding="utf-8").partition("## Agent fra")[0]
FIRST_PAGE = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


@pytest.mark.every_time
@pytest.mark.parametrize(("page", "count"), [(PAGE, 5), (FIRST_PAGE, 1)])
async def test_each_block_runs(page: str, count: int, settings: Settings) -> None:
    there = blocks(page)
    assert len(there) == count
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        known: dict[str, Any] = {}
        producer = f'"{settings.kafka.bootstrap_servers}", topic="{worker.topics.conversations}"'

        def run(block: str) -> None:
            here = block.replace(":8000", f":{worker.api.port}").replace('"127.0.0.1:9092"', producer)
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(f"from __future__ import annotations\n{here}", "<block>", "exec"), known)

        for block in there:
            await asyncio.to_thread(run, block)
        known["memory"].close()
    assert known["hits"][0].memory.count("Oslo") == 1
    assert "Oslo" in known["prompt"]


def test_methods_and_errors_are_those_that_there_are() -> None:
    first, _, rest = PAGE.partition("## Reading")
    named = set(re.findall(r"`(\w+)`", first.partition("## Methods")[2]))
    methods = {name for name in vars(Memory) if name[0] != "_"} - {"close"}
    assert named - {"siltstone"} == methods
    raised = {name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, Exception)}
    table = rest.partition("## Errors")[2].partition("A call is tried")[0]
    assert set(re.findall(r"`([A-Z]\w+)`", table)) == raised - {"Refused"}
