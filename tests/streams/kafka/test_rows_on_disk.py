"""A worker that comes back to its disk reads what its changelog has got since, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiokafka
import pytest

from schemas.settings import Settings
from streams.kafka.clients.broker import client_options
from tables.windows.window_stores import WindowStores
from tests.streams.kafka.worker import changelog_of, feed, on_one_partition, running
from tests.support.committed import committed
from tests.support.waiting import until
from tests.support.window_stores import close_stores

KEYS = [f"key {n}" for n in range(60)]


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows of the changelog were read each time."""
    from tables.windows.rows import Rows

    read: list[int] = []
    restore = Rows.restore

    def noted(rows: Rows[Any], partition: int, given: Sequence[Any]) -> None:
        found = list(given)
        read.append(len(found))
        restore(rows, partition, found)

    monkeypatch.setattr(Rows, "restore", noted)
    return read


async def lived(settings: Settings, value: str, topic_id: str | None = "one", keys: Sequence[str] = KEYS) -> None:
    """A worker takes these and commits."""
    async with running(settings, topic_id=topic_id) as worker:
        await until(lambda: worker.recovered is not None)
        await feed(settings, keys, value)
        end = (await committed(settings.kafka, 0) or 0) + len(keys)
        await until(lambda: worker.done == end)
        assert await worker.consumer.commit()


async def test_after_an_orderly_stop_nothing_is_read(settings: Settings, restored: list[int]) -> None:
    settings = on_one_partition(settings)
    await lived(settings, "old")
    async with running(settings, topic_id="one") as worker:
        await until(lambda: worker.recovered is not None)
        assert worker.recovered == dict.fromkeys(KEYS, "old")
        assert (sum(restored), worker.read) == (0, [])


async def test_what_another_wrote_meanwhile_is_read_and_nothing_before_it(
    settings: Settings, restored: list[int]
) -> None:
    settings = on_one_partition(settings)
    await lived(settings, "old")
    topic, partition = changelog_of(settings)
    async with aiokafka.AIOKafkaProducer(**client_options(settings.kafka)) as producer:
        await producer.send_and_wait(topic, b"theirs", b"key 7", partition)
        await producer.send_and_wait(topic, None, b"key 8", partition)
    async with running(settings, topic_id="one") as worker:
        await until(lambda: worker.recovered is not None)
        expected = {**dict.fromkeys(KEYS, "old"), "key 7": "theirs"}
        del expected["key 8"]
        assert worker.recovered == expected
        assert sum(restored) == 2


async def test_rows_that_the_disk_did_not_get_come_from_the_changelog(
    settings: Settings, restored: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker dies when the changelog has them, and the disk has not; the other way round does not happen."""
    settings = on_one_partition(settings)
    await lived(settings, "old")

    def dies(*_: object) -> None:
        raise SystemExit  # nothing more is written, as after a kill

    with monkeypatch.context() as patched:
        patched.setattr(WindowStores, "commit", dies)
        async with running(settings, topic_id="one") as worker:
            await until(lambda: worker.recovered is not None)
            await feed(settings, KEYS[:5], "new")
            await until(lambda: worker.done == 65)
            with pytest.raises(SystemExit):
                await worker.hot.outbox.flush()
            patched.setattr(worker.hot.outbox, "_flush", refused)
    restored.clear()
    async with running(settings, topic_id="one") as worker:
        await until(lambda: worker.recovered is not None)
        assert worker.recovered == {**dict.fromkeys(KEYS, "old"), **dict.fromkeys(KEYS[:5], "new")}
        assert sum(restored) == 5


async def refused() -> bool:
    return False


async def test_rows_of_another_log_of_the_same_name_are_not_used(settings: Settings, restored: list[int]) -> None:
    settings = on_one_partition(settings)
    await lived(settings, "old")
    async with running(settings, topic_id="two") as worker:
        await until(lambda: worker.recovered is not None)
        assert worker.recovered == dict.fromkeys(KEYS, "old")
        assert sum(restored) >= len(KEYS)


async def test_a_changelog_that_ends_before_what_the_disk_has_is_read_from_its_start(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker that has lost the end of it, or another one, whose topics have no ids of their own."""
    settings = on_one_partition(settings)
    await lived(settings, "old")
    stores = WindowStores(settings.data_dir / "windows")
    topic = changelog_of(settings).topic
    stores.topic_ids = {topic: "one"}
    rows = stores.table(topic, b"t")
    stores.open(0)
    rows.write(0, [(b"from nowhere", b"x")])
    stores.commit(0, {topic: (100_000, 60, 0)}, stores.begin())
    close_stores(stores)
    async with running(settings, topic_id="one") as worker:
        await until(lambda: worker.recovered is not None)
        assert worker.recovered == dict.fromkeys(KEYS, "old")
    assert "it ends before the last offset that was read, and is read again" in caplog.text


async def test_a_store_that_is_damaged_is_made_anew_from_the_changelog(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings = on_one_partition(settings)
    await lived(settings, "old")
    current: Path = settings.data_dir / "windows" / "0" / "CURRENT"
    current.write_bytes(b"nonsense")  # noqa: ASYNC240 - it is a test
    async with running(settings, topic_id="one") as worker:
        await until(lambda: worker.recovered is not None)
        assert worker.recovered == dict.fromkeys(KEYS, "old")
    assert "the store is removed, and its changelogs are read from the start" in caplog.text
