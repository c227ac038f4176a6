"""The page for those who come from mem0: its blocks run with the real client, its commands beside a worker."""

from __future__ import annotations

import asyncio
import re
import shlex
import subprocess
from pathlib import Path

import orjson
import pytest

from schemas.settings import Settings
from streams.doors.cli import running
from tests.docs.pages import ROOT
from tests.mem0.real_client import PYTHON, environment
from tests.streams.doors.importing.test_memories import ROWS, zipped
from tests.support.quick_commands import siltstone

PAGE = (ROOT / "docs" / "migrating-from-mem0.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def ran(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(PYTHON), "-c", program]
    return subprocess.run(command, capture_output=True, text=True, env=environment(folder), check=False)


@pytest.mark.slow
async def test_the_blocks_run_with_the_real_client(settings: Settings, tmp_path: Path) -> None:
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        program = "\n".join(blocks("python")).replace(":8000", f":{worker.api.port}").replace("slt_…", "x")
        done = await asyncio.to_thread(ran, program, tmp_path)
    assert (done.returncode, done.stdout.count("peanuts")) == (0, 2), f"{done.stdout}{done.stderr}"
    assert "'source': 'chat'" in done.stdout


@pytest.mark.slow
async def test_the_commands_move_memories_in_and_out(settings: Settings, tmp_path: Path) -> None:
    listed = {"results": [{"id": "1", "memory": "Likes cricket", "user_id": "alice", "created_at": "2026-01-01"}]}
    rows = {**ROWS, "user": {"user_id": "alice"}}
    files = {
        "memories.json": orjson.dumps(listed),
        "memories_export_alice.zip": zipped(memories_json=orjson.dumps(rows)),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    names = {"SILTSTONE_KAFKA__TOPIC_PREFIX": settings.kafka.topic_prefix}
    commands = [shlex.split(line)[1:] for block in blocks("console") for line in block.splitlines()]
    assert [words[0] for words in commands] == ["import", "import", "export", "import"]
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        for words in commands:
            more = ["--url", f"http://127.0.0.1:{worker.api.port}"]
            if words[0] == "import":
                more += ["--wait", "--bootstrap-servers", settings.kafka.bootstrap_servers]
            done = await siltstone(*words, *more, **names)
            assert done.returncode == 0, done.stderr
    exported = [orjson.loads(line) for line in (tmp_path / "alice.jsonl").read_bytes().splitlines()]
    assert {one["text"] for one in exported if one["type"] == "memory"} == {
        "Likes cricket",
        "Likes skiing",
        "Lived in Oslo",
    }
