"""Requests that the OpenAPI allows, and others, to a real worker: it answers each as the OpenAPI says."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import httpx
import pytest

from schemas.settings import Settings
from streams.app import Siltstone

pytestmark = pytest.mark.slow

CHECKS = ",".join(
    [
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
        "unsupported_method",
        "allow_header_conformance",
    ]
)


async def test_every_answer_is_one_that_the_openapi_has(
    settings: Settings, worker: Siltstone, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    """Without tokens."""
    report = tmp_path / "report.json"
    command = [sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()", "run"]
    options = ["--checks", CHECKS, "--phases", "coverage,fuzzing", "-n", "5", "--seed", "1", "--no-shrink"]
    process = await asyncio.create_subprocess_exec(
        *command,
        f"http://127.0.0.1:{worker.api.port}/openapi.json",
        *options,
        "--continue-on-failure",
        *("--report", "json", "--report-json-path", str(report)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=tmp_path,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()[-5000:]
    found = json.loads(report.read_bytes())
    assert (found["failures"], found["errors"]) == ([], [])
    assert found["operations"]["tested"] == found["operations"]["total"] > 40
