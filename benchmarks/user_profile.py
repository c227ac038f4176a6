"""What the profile of a user costs, and what it shows (`streams/recall/profile.py`).

    python benchmarks/user_profile.py MESSAGES.jsonl [--names USERS.jsonl] [--user USER]... [--json]

Each message of a user and the message that answers it are a memory, as under `memory.scoring.policy: all`. The
moment is an hour after the newest message, and all memories are fresh. For 100, 1,000 and 5,000 memories (of all
users, again from the beginning if the file has fewer): milliseconds of the first profile, and of the next one after
it, the best of three. With `--user`, print that user's profile instead, to be read. A line of `--names` gives the
speakers of a user's conversations: `{"user_id", "user_name", "assistant_name"}`.
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split

import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Final

import click
import orjson

from schemas.conversations import ChatMessage, Role
from schemas.exchanges import Exchange, Message, render
from schemas.memories import Memory, State
from schemas.settings import LifecycleSettings
from schemas.sources import SOURCES
from streams.recall.dates import ReferenceDate
from streams.recall.profile import profile_of
from streams.recall.profile_reading import Readings

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.evidence.sets import Lines, lines, named

COUNTS: Final = (100, 1_000, 5_000)
ROUNDS: Final = 3
HOUR_MS: Final = 3_600_000
File = click.Path(exists=True, dir_okay=False, path_type=Path)


def memories_of(messages: Lines) -> Iterator[Memory]:
    """The exchanges of each session, each with one message of the user, as memories."""
    kept: list[ChatMessage] = []
    for said in [*map(ChatMessage.model_validate, messages), None]:
        other = said is None or not kept or said.session_id != kept[0].session_id or said.role is Role.USER
        if kept and other:
            yield _memory(kept)
            kept = []
        if said is not None and said.role in (Role.USER, Role.ASSISTANT):
            kept.append(said)


def _memory(said: list[ChatMessage]) -> Memory:
    exchange = Exchange(0, tuple(map(Message.of, said)))
    meta = {"speakers": exchange.speakers()} if exchange.speakers() else {}
    return Memory(
        seq=exchange.started_at,
        id=uuid.uuid4(),
        user_id=said[0].user_id,
        session_id=said[0].session_id,
        agent_id=None,
        text=render(exchange),
        kind="exchange",
        message_ids=tuple(exchange.message_ids),
        importance=85,
        created_at=exchange.started_at,
        last_accessed=exchange.started_at,
        access_count=0,
        state=State.ACTIVE,
        pinned=False,
        meta={**meta, SOURCES: exchange.sources()},
    )


def fresh(memories: list[Memory]) -> tuple[list[Memory], ReferenceDate]:
    """The memories as accessed now, and now."""
    now = max(one.created_at for one in memories) + HOUR_MS
    return [replace(one, last_accessed=now) for one in memories], ReferenceDate(now, UTC)


def timed(memories: list[Memory]) -> tuple[float, float]:
    """Milliseconds of the first profile, and of the next one."""
    taken, (given, now) = [], fresh(memories)
    for _ in range(ROUNDS):
        readings, times = Readings(), []
        for _ in range(2):
            begun = time.perf_counter()
            profile_of(given, now, now.moment, LifecycleSettings(), readings=readings)
            times.append(1_000 * (time.perf_counter() - begun))
        taken.append(times)
    first, following = (round(min(each), 1) for each in zip(*taken, strict=True))
    return first, following


@click.command()
@click.argument("messages", type=File)
@click.option("--names", type=File, help="Names of the speakers, by user.")
@click.option("--user", "users", multiple=True, help="Print the profile of this user; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="End with one JSON object.")
def main(messages: Path, names: Path | None, users: tuple[str, ...], as_json: bool) -> None:
    """Measure profiles of the users of MESSAGES, or print them."""
    said = lines(messages) if names is None else named(lines(messages), lines(names))
    if users:
        for user in users:
            if not (found := list(memories_of([one for one in said if one["user_id"] == user]))):
                raise click.ClickException(f"{messages.name} has no messages of {user}")
            given, now = fresh(found)
            shown = profile_of(given, now, now.moment, LifecycleSettings())
            click.echo(f"{user}: {len(found)} memories, {shown.tokens} tokens\n{shown.text}\n")
        return
    known = list(memories_of(sorted(said, key=lambda one: (one["user_id"], one["session_id"], one["timestamp"]))))
    figures: dict[str, float] = {}
    for count in COUNTS:
        several = [replace(known[place % len(known)], id=uuid.uuid4(), seq=place) for place in range(count)]
        first, following = timed(several)
        figures |= {f"first_ms_{count}": first, f"next_ms_{count}": following}
        click.echo(f"{count:>5,} memories: first {first} ms, next {following} ms")
    if as_json:
        click.echo(orjson.dumps(figures))


if __name__ == "__main__":
    main()
