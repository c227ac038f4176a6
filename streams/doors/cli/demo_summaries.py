"""The part of `siltstone demo` about daily summaries: write the users' summaries, and show one of the files."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import httpx
from rich.console import Console

from streams.app import Siltstone
from streams.doors.cli.markdown import shown
from streams.intake.rules.summary_triggers import Triggers
from streams.telemetry.metrics import labelled
from tables.summaries.user_folders import folder_of

#: The maximum number of seconds to wait for the summaries. The summaries of the bundled chats take two seconds of
#: processor time, at a low priority. The summaries of a large file may take longer than this limit, and the demo then
#: continues without them.
PATIENCE_SECONDS = 60.0
#: The maximum number of users for whom a summary of an unfinished day is requested.
ASKED_USERS = 10


class Summed(NamedTuple):
    """The number of summaries that were written, and the number that were not finished in time (`left`)."""

    written: int
    left: int


async def days_summed_up(worker: Siltstone, api: httpx.AsyncClient, newest: Mapping[str, int]) -> Summed:
    """Make the worker write summaries of the users' days, wait for them, and return their numbers.

    Finished days are summed up as at midnight. A summary of the unfinished day is requested for at most `ASKED_USERS`
    users. `newest` has the time of each user's last message (epoch ms).
    """
    hot, topics = worker.hot, worker.topics
    deadline = time.monotonic() + PATIENCE_SECONDS
    await worker.intake.short_term.note_silence(worker.settings.memory)
    await hot.outbox.flush()
    silences = await hot.ends(topics.conversations)
    await _until(lambda: hot.processed(topics.conversations, silences) == sum(silences.values()), deadline)
    end_of_day = Triggers(worker.summaries.plan).end_of_day
    still = [user for user, at in newest.items() if end_of_day(at) > worker.clock.now()]
    for user in sorted(still, key=lambda user: newest[user])[-ASKED_USERS:]:
        await api.post("/v1/summaries", json={"user_id": user})  # 404 if a day has only messages of tools
    await hot.outbox.flush()
    wanted = sum((await hot.ends(topics.summary_requests)).values())
    await _until(lambda: _tried(worker) >= wanted, deadline)
    outcomes = labelled(worker.metrics.summaries)
    written = sum(outcomes.get((outcome,), 0) for outcome in ("written", "written_elsewhere"))
    return Summed(written, max(0, wanted - _tried(worker)))


async def _until(condition: Callable[[], bool], deadline: float) -> None:
    while not condition() and time.monotonic() < deadline:  # noqa: ASYNC110 - counters notify no waiter
        await asyncio.sleep(0.05)


def _tried(worker: Siltstone) -> int:
    return sum(labelled(worker.metrics.summaries).values())


async def show_richest(worker: Siltstone, users: list[str], summed: Summed, console: Console) -> None:
    """Show the number of summaries, and the summary file that has the most items."""
    found = await asyncio.to_thread(_richest, worker, users)
    if found is None:
        if summed.left:
            console.print(f"No summary was written within {PATIENCE_SECONDS:.0f} s: the machine is busy.")
        return
    path, markdown = found
    left = f", {summed.left} are not finished yet" if summed.left else ""
    console.print(f"{summed.written} summaries were written{left}. One of the files, {path}:", style="bold")
    console.print()
    console.print(shown(markdown))
    console.print()


def _richest(worker: Siltstone, users: list[str]) -> tuple[Path, str] | None:
    files = worker.summaries.files
    days = [(user, day) for user in users for day in files.dates(user)]
    texts = {(user, day): text for user, day in days if (text := files.read(user, day)) is not None}
    if not texts:
        return None
    user, day = max(texts, key=lambda key: texts[key].count("<!-- sources: "))
    return worker.settings.data_dir / "memory" / folder_of(user) / f"{day}.md", texts[user, day]
