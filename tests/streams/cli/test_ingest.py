"""What `siltstone ingest` says of a file, and how it waits for standard input."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from schemas.lifecycle import DAY_MS
from schemas.settings import LifecycleSettings
from streams.cli.ingest import Done, _each
from streams.importing.formats import Format
from streams.importing.found import Found, Given, LeftOut
from tests.support.making import START

LIFECYCLE = LifecycleSettings(fresh_days=7)


@pytest.mark.parametrize(
    ("done", "lifecycle", "warned"),
    [
        (Done(Format.OPENAI, 3, newest=START - 8 * DAY_MS), LIFECYCLE, "the newest of 2025-12-24. Its memories fade"),
        (
            Done(Format.OPENAI, 3, newest=START - 9 * DAY_MS),
            LIFECYCLE,
            "(that of the file, which has no times: touch",
        ),
        (Done(Format.OPENAI, 3, newest=START - 6 * DAY_MS), LIFECYCLE, None),
        (Done(Format.OPENAI, 3, newest=START - 8 * DAY_MS), LifecycleSettings(fresh_days=10), None),
        (Done(Format.OPENAI, 3, newest=START - 8 * DAY_MS), LifecycleSettings(clock="event"), None),
        (Done(bad=3), LIFECYCLE, "nothing in x.json could be read"),
        (Done(), LIFECYCLE, None),
    ],
)
def test_a_file_that_will_not_be_found_is_warned_of(
    done: Done, lifecycle: LifecycleSettings, warned: str | None
) -> None:
    warnings = done.warnings("x.json", Given(START, undated=START - 9 * DAY_MS), lifecycle)
    assert len(warnings) == (warned is not None)
    assert all(str(warned) in one for one in warnings)


async def test_while_standard_input_says_nothing_what_it_said_is_sent() -> None:
    """Reading waits beside the event loop."""
    go_on = threading.Event()

    def said() -> Iterator[Found]:
        yield LeftOut(1)
        assert go_on.wait(10)
        yield LeftOut(2)

    found = []
    async for one in _each(said(), waits=True):
        found.append(one)
        go_on.set()
    assert found == [LeftOut(1), LeftOut(2)]
