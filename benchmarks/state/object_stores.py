"""Object stores on this machine: a folder, or an S3 server on loopback that keeps its objects in files."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import click
from obstore.store import S3Store

from streams.runtime.children import die_with_parent
from streams.runtime.ports import reserved_port

BUCKET: Final = "siltstone"
START_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """The store of checkpoints. `environment` has its client's variables, `sizes` returns each object's bytes."""

    kind: str
    url: str
    environment: Mapping[str, str]
    sizes: Callable[[], dict[str, int]]


@contextlib.contextmanager
def object_store(kind: str, folder: Path) -> Iterator[ObjectStore]:
    """A store of kind `file` or `s3`, until the block ends."""
    folder.mkdir()
    if kind == "file":
        yield ObjectStore(kind, f"file://{folder}", {}, lambda: _files(folder))
        return
    with _s3_server(folder) as environment:
        options = {name.lower(): value for name, value in environment.items()}
        store = S3Store(BUCKET, config=options, client_options={"allow_http": True})  # type: ignore[arg-type]
        yield ObjectStore(kind, f"s3://{BUCKET}/checkpoints", environment, lambda: _objects(store))


def _files(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_size for path in folder.rglob("*") if path.is_file()}


def _objects(store: S3Store) -> dict[str, int]:
    return {found["path"]: found["size"] for page in store.list() for found in page}


@contextlib.contextmanager
def _s3_server(folder: Path) -> Iterator[dict[str, str]]:
    """moto's S3 server, with an empty bucket."""
    with reserved_port() as port, (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdout=log,
            stderr=log,
            env=os.environ | {"TMPDIR": str(folder)},
            preexec_fn=partial(die_with_parent, os.getpid()),
        )
        try:
            address = f"http://127.0.0.1:{port}"
            _make_bucket(server, address)
            yield {
                "AWS_ENDPOINT_URL": address,
                "AWS_ALLOW_HTTP": "true",
                "AWS_ACCESS_KEY_ID": "benchmark",
                "AWS_SECRET_ACCESS_KEY": "benchmark",
                "AWS_DEFAULT_REGION": "us-east-1",
            }
        finally:
            server.terminate()
            server.wait()


def _make_bucket(server: subprocess.Popen[bytes], address: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            request = urllib.request.Request(f"{address}/{BUCKET}", method="PUT")
            with urllib.request.urlopen(request, timeout=5):
                return
        time.sleep(0.1)
    raise click.ClickException("moto's S3 server did not start: pip install 'siltstone[test]'")
