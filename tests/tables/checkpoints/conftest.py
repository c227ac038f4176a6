"""Stores: a folder, and an S3 server on loopback with a door before it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.object_store import Door, environment, make_bucket, s3_server
from tests.support.untouched import lasting


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    with ExitStack() as stack:
        with lasting():
            address = stack.enter_context(s3_server())
        yield address


@pytest.fixture
def door(s3: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    with Door(s3) as door:
        for name, value in environment(door.address).items():
            monkeypatch.setenv(name, value)
        yield door


@pytest.fixture
def s3_url(s3: str, door: Door) -> str:
    """In a bucket of its own."""
    bucket = f"b-{uuid.uuid4()}"
    make_bucket(s3, bucket)
    return f"s3://{bucket}/some/prefix"


@pytest.fixture(params=["file", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """One suite for both kinds of stores."""
    if request.param == "file":
        return f"file://{tmp_path}/the store"
    found: str = request.getfixturevalue("s3_url")
    return found
