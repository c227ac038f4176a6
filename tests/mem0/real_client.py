"""mem0's own `MemoryClient`, in the environment that has it, driven from a test."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import orjson

from tests.docs.pages import ROOT

PYTHON: Final = ROOT / ".venv-mem0" / "bin" / "python"


class Refused(Exception):
    """What the client raised: `kind` is the name of its class."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        super().__init__(message)


def environment(folder: Path) -> Mapping[str, str]:
    """It tells nobody what it does, and keeps its own file in the folder."""
    assert PYTHON.exists(), "mem0's client is not installed: make .venv-mem0/.installed"
    return {**os.environ, "MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder), "NO_PROXY": "*"}


class RealClient:
    """`await client.call("search", "tea", filters={"user_id": "ann"})`. Raises `Refused`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    async def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        return await asyncio.to_thread(self._asked, [method, args, kwargs])

    async def refusal(self, method: str, *args: Any, **kwargs: Any) -> tuple[str, str]:
        """The class and the text of what the call raises."""
        try:
            found = await self.call(method, *args, **kwargs)
        except Refused as exc:
            return exc.kind, str(exc)
        raise AssertionError(f"it was not refused: {found}")

    def _asked(self, wanted: list[Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(orjson.dumps(wanted) + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the client's process has ended"
        answer = orjson.loads(line)
        if "error" in answer:
            raise Refused(answer["error"], answer["message"])
        return answer["result"]


@contextmanager
def real_client(port: int, folder: Path, api_key: str = "no tokens are asked for") -> Iterator[RealClient]:
    command: list[str | Path] = [PYTHON, Path(__file__).with_name("driver.py"), f"http://127.0.0.1:{port}", api_key]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(folder), cwd=folder
    )
    with process:
        try:
            yield RealClient(process)
        finally:
            process.kill()
