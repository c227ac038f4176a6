"""What was lost before it was read is told once, with its place, and counted."""

from __future__ import annotations

import pytest

from streams.kafka.faust.status import Restored
from streams.kafka.losses import Losses
from streams.telemetry.metrics import Metrics, labelled
from tests.support.making import START

TOPIC = "s.conversations"


class Bench:
    def __init__(self, at: int | None = START) -> None:
        self.metrics = Metrics()
        self.losses = Losses(self.metrics, self.time_of)
        self.at, self.asked = at, list[tuple[str, int, int, int]]()

    async def time_of(self, topic: str, partition: int, start: int, end: int) -> int | None:
        self.asked.append((topic, partition, start, end))
        return self.at

    def restored(self, table: str, start: int, rows: int, committed: int) -> None:
        found = [Restored(table, f"g-{table}-changelog", 1, start, rows)]
        self.losses.restored(found, "sessions", TOPIC, {1: committed})

    @property
    def counted(self) -> tuple[dict[tuple[str, ...], int], dict[tuple[str, ...], int]]:
        return labelled(self.metrics.lost_records), labelled(self.metrics.emptied_changelogs)


def test_an_emptied_changelog_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    for _ in range(2):
        bench.restored("sessions", 40, 0, 5120)
    assert caplog.messages == [
        "g-sessions-changelog[1]: restored 0 rows although offset 5120 of s.conversations was committed; its first "
        "offset is 40: the content of its rows is lost"
    ]
    assert bench.counted == ({("g-sessions-changelog",): 40}, {("g-sessions-changelog",): 1})


def test_a_changelog_that_was_made_anew_is_told_where_there_must_be_rows(caplog: pytest.LogCaptureFixture) -> None:
    """Not every table has rows: nobody need have asked for a note."""
    bench = Bench()
    bench.restored("notes", 0, 0, 5120)
    assert caplog.messages == []
    bench.restored("sessions", 0, 0, 5120)
    assert bench.counted[1] == {("g-sessions-changelog",): 1}


def test_rows_that_were_deleted_before_others_are_told(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.restored("exchanges", 40, 7, 5120)
    assert caplog.messages == [
        "g-exchanges-changelog[1]: restored 7 rows; offsets 0 to 39 were deleted: rows that were only there are lost"
    ]
    assert bench.counted == ({("g-exchanges-changelog",): 40}, {})


def test_where_nothing_was_committed_nothing_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    Bench().restored("sessions", 0, 0, 0)
    assert caplog.messages == []


async def test_offsets_that_were_set_past_the_lag_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    for _ in range(2):
        await bench.losses.moved(TOPIC, 1, 3, 10)
    assert caplog.messages == [
        "s.conversations[1]: offsets 4 to 9 were skipped unread: the group's offset was set to 10 by another "
        "tool; the oldest remaining one of these records is of 2026-01-01T00:00:00.000Z"
    ]
    assert bench.counted[0] == {(TOPIC,): 6}
    assert bench.asked == [(TOPIC, 1, 4, 10)]


async def test_offsets_that_were_set_back_are_no_loss(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    await bench.losses.moved(TOPIC, 1, 9, 10)
    await bench.losses.moved(TOPIC, 1, 9, 2)
    assert (caplog.messages, bench.counted[0]) == ([], {})


async def test_where_it_is_not_known_what_was_read_that_is_told(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    await bench.losses.moved(TOPIC, 1, None, 10)
    assert caplog.messages == [
        "s.conversations[1]: the group's offset was set to 10 by another tool; it is unknown which offsets were "
        "skipped"
    ]
    assert bench.counted[0] == {}
