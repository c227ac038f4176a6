"""Clusters of Apache Kafka. Without `--broker kafka` (`make test-kafka`), what needs them is not collected."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tests.kafka.cluster import Cluster, cluster
from tests.kafka.secured import Secured, secured
from tests.kafka.source import Source, found
from tests.support.waiting import until

#: What is tested without a broker.
ANYWHERE = {"test_source.py"}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    needs_one = collection_path.name.startswith("test_") and collection_path.name not in ANYWHERE
    return True if needs_one and config.getoption("--broker") != "kafka" else None


@pytest.fixture(autouse=True)
async def connections_end() -> AsyncIterator[None]:
    """What was closed is closed before the loop is: TLS takes its leave of the other side first."""
    selector = cast(Any, asyncio.get_running_loop())._selector
    before = len(selector.get_map())
    yield
    await until(lambda: len(selector.get_map()) <= before)


@pytest.fixture(scope="session")
def source() -> Source:
    source = found()
    assert source is not None
    return source


@pytest.fixture(scope="module")
def three(source: Source) -> Iterator[Cluster]:
    """Three brokers; a record is acknowledged when two of them have it."""
    with cluster(source, 3, properties={"min.insync.replicas": "2"}) as running:
        yield running


@pytest.fixture(scope="session")
def safe(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker that lets in who shows the right thing, and to what they have the right."""
    with secured(source, tmp_path_factory.mktemp("certificates")) as running:
        yield running
