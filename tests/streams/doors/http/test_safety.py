"""What stands before the routes: hosts, pages, bodies, what a body says, and what an answer repeats."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from schemas.settings import Settings
from streams.doors.cli.process import write_as_let_in
from tables.privacy import make_private, umask_of
from tests.support.late_api import http_of
from tests.support.untouched import umask

JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def asked(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """A worker that does not run, asked at loopback, without tokens."""
    async with http_of(settings) as client:
        yield client


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:9"}, 200),
        ({"Host": "[::1]:8000"}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example:8000"}, 421),
        ({"Host": "127.0.0.1@evil.example"}, 421),
        ({"Origin": "http://127.0.0.1:8000"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:3000"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Origin": "http://[", "Host": "["}, 421),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
    ],
)
async def test_a_name_and_a_page_that_are_not_ours_are_refused(
    asked: httpx.AsyncClient, headers: dict[str, str], status: int
) -> None:
    assert (await asked.get("/healthz", headers=headers)).status_code == status


async def test_a_link_from_another_site_leads_to_the_pages_and_to_nothing_else(asked: httpx.AsyncClient) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert (await asked.get("/docs", headers=link)).status_code == 200
    assert (await asked.get("/docs", headers={**link, "Sec-Fetch-Dest": "iframe"})).status_code == 403
    assert (await asked.get("/v1/memories", headers=link, params={"user_id": "a"})).status_code == 403


async def test_pages_fetch_nothing_from_elsewhere(asked: httpx.AsyncClient) -> None:
    for page in ("/docs", "/redoc"):
        answer = await asked.get(page)
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert "https://" not in answer.text
        for name in ("swagger-ui-bundle.js", "swagger-ui.css", "redoc.standalone.js", "favicon.png"):
            if name in answer.text:
                assert (await asked.get(f"/docs/files/{name}")).status_code == 200
    assert (await asked.get("/docs/files/nothing.js")).status_code == 404


async def test_what_changes_something_is_written_in_json(asked: httpx.AsyncClient) -> None:
    for headers in ({}, {"Content-Type": "text/plain"}, {"Content-Type": "application/x-www-form-urlencoded"}):
        assert (await asked.post("/v1/snapshot", headers=headers)).status_code == 415
        assert (await asked.post("/v1/sessions/s/end?user_id=a", headers=headers)).status_code == 415


async def test_a_large_body_is_not_read(asked: httpx.AsyncClient) -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(100):
            read += 1 << 20
            yield b" " * (1 << 20)

    answer = await asked.post("/v1/messages", headers=JSON, content=endless())
    assert (answer.status_code, answer.headers["Connection"]) == (413, "close")
    assert read <= 10 << 20


@pytest.mark.parametrize("value", ["NaN", "1e400", "-Infinity", "[" * 3000 + "]" * 3000, "1" + "0" * 400])
async def test_what_is_no_json_is_422(asked: httpx.AsyncClient, value: str) -> None:
    content = f'{{"user_id": "a", "session_id": "s", "role": "user", "content": "x", "metadata": {{"n": {value}}}}}'
    answer = await asked.post("/v1/messages", headers=JSON, content=content)
    assert (answer.status_code, list(answer.json())) == (422, ["detail"])


async def test_a_request_names_one_user(asked: httpx.AsyncClient) -> None:
    several = [
        await asked.get("/v1/memories?user_id=a&user_id=b"),
        await asked.post("/v1/search", json={"user_id": "a", "userId": "b", "query": "x"}),
        await asked.post("/v1/search?user_id=b", json={"user_id": "a", "query": "x"}),
    ]
    assert {(one.status_code, one.text) for one in several} == {(422, '{"detail":"user_id: name one user, once"}')}


async def test_a_422_is_one_text_and_repeats_nothing(asked: httpx.AsyncClient) -> None:
    said = {"user_id": "a", "session_id": "s", "role": "user", "content": "x"}
    refused = [
        await asked.post("/v1/messages", json={**said, "SECRET": "x" * 40_000}),
        await asked.post("/v1/messages", json={**said, "role": "SECRET"}),
        await asked.post("/v1/search", json={"user_id": "a", "query": "x", "SECRET": 1, "filters": ["SECRET"]}),
        await asked.post("/v1/memories", json={"user_id": "a", "text": "x", "memory_id": "SECRET"}),
        await asked.get("/v1/memories?user_id=a&filter=SECRET"),
        await asked.get("/v1/memories/SECRET?user_id=a"),
        await asked.get("/v1/applied?at_least=SECRET"),
    ]
    for answer in refused:
        assert answer.status_code == 422
        assert isinstance(answer.json()["detail"], str)
        assert "SECRET" not in answer.text


async def test_a_method_that_is_wrong_is_told_all_that_are_right(asked: httpx.AsyncClient) -> None:
    for method, path, allowed in (
        ("PUT", "/v1/memories", "DELETE, GET, POST"),
        ("OPTIONS", "/v1/archive", "GET, POST"),
        ("PATCH", "/v1/links", "DELETE, POST"),
        ("DELETE", "/v1/archive/search", "POST"),
    ):
        answer = await asked.request(method, path)
        assert (answer.status_code, answer.headers["Allow"]) == (405, allowed)


@pytest.mark.parametrize(
    ("before", "after"), [(0o755, 0o700), (0o775, 0o700), (0o750, 0o750), (0o770, 0o770), (0o2775, 0o2770)]
)
def test_a_data_directory_is_its_owners_and_a_group_that_was_let_in_stays(
    tmp_path: Path, before: int, after: int
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(before)
    before_it = os.umask(0o022)
    try:
        make_private(folder)
        assert umask() == 0o022, "what the rest of the process writes is for others to decide"
        write_as_let_in(folder)
        (folder / "file").write_text("words")
    finally:
        os.umask(before_it)
    assert stat.S_IMODE(folder.stat().st_mode) == after
    assert stat.S_IMODE((folder / "file").stat().st_mode) == 0o666 & after & 0o777


def test_a_data_directory_that_is_made_is_its_owners_from_its_first_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    monkeypatch.setattr(Path, "chmod", lambda folder, mode: made.append(mode))
    before_it = os.umask(0o022)
    try:
        make_private(tmp_path / "above" / "data")
    finally:
        os.umask(before_it)
    assert stat.S_IMODE((tmp_path / "above" / "data").stat().st_mode) == 0o700
    assert made == [], "it was never open to others"


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o775, 0o750, 0o770, 0o2775, 0o2755])
def test_a_command_may_set_its_umask_before_the_directory_is_made_private(tmp_path: Path, mode: int) -> None:
    assert umask_of(tmp_path / "none") == 0o077
    tmp_path.chmod(mode)
    before = umask_of(tmp_path)
    make_private(tmp_path)
    assert umask_of(tmp_path) == before
