"""`python -m tests.crash.points POINT NTH MARK worker …`: a worker that is killed at a chosen point of its work.

SIGKILL strikes before or after the NTH call of a function, wherever in the program that is. The file MARK is written
first: a point that is never reached kills nobody, and its test can tell.
"""

from __future__ import annotations

import inspect
import os
import pkgutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from itertools import count
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Point:
    """Before or after a call of `where`, named `module:Class.method`."""

    name: str
    when: Literal["before", "after"]
    where: str
    nth: int = 1


#: Along the way of the data (window → promotion → commit → shard → index → states → copy); then starts and ends.
POINTS = (
    Point("a batch is read", "before", "streams.intake.agent:ShortTermAgent.handle", 3),
    Point("windows are kept, promotions not posted", "before", "streams.intake.agent:ShortTermAgent._follow", 2),
    Point("promotions are posted, not sent", "before", "streams.kafka.commit.sends:Sends.deliver", 4),
    Point("promotions are sent, not acknowledged", "after", "streams.kafka.commit.sends:Sends.deliver", 3),
    Point("no table is written", "before", "streams.kafka.commit.outbox:Outbox._write"),
    Point("exchanges are written, sessions not", "before", "streams.kafka.commit.outbox:Outbox._write", 2),
    Point("the first deletions are written", "after", "streams.kafka.commit.outbox:Outbox._write", 4),
    Point("all is written, no offset committed", "after", "streams.kafka.commit.outbox:Outbox.flush", 2),
    Point("offsets are committed", "after", "streams.kafka.faust.committing:Committing._commit_offsets", 2),
    Point("events are read", "before", "streams.memory.agent:LongTermAgent.handle", 2),
    Point("texts are embedded, not written", "after", "streams.shards.models:ShardModel.embed", 2),
    Point("rows are not committed", "before", "tables.memories.catalog.catalog:Catalog.write", 3),
    Point(
        "vectors are on the disk, rows are not",
        "after",
        "tables.memories.catalog.stored_vectors:StoredVectors.add",
        3,
    ),
    Point("rows are committed, the index knows nothing", "after", "tables.memories.catalog.catalog:Catalog.write", 3),
    Point("the index has them, no offset is committed", "after", "tables.vectors.cells:NewCells.add", 3),
    Point("events are applied, notes not taken", "before", "streams.intake.session_notes:SessionNotes.take", 2),
    Point("a summary is due, and not written", "before", "tables.summaries.day_files:DayFiles.append", 2),
    Point(
        "a summary is written, its request not acknowledged", "after", "tables.summaries.day_files:DayFiles.append", 2
    ),
    Point("a segment is being written", "before", "tables.vectors.segment_file:_tables"),
    Point("a segment is written, no manifest names it", "before", "tables.vectors.segmented:write_manifest"),
    Point("the manifest is swapped", "after", "tables.vectors.segmented:write_manifest"),
    Point("states are stored, transitions not sent", "after", "tables.memories.catalog.ageing:Ageing.unpublished", 3),
    Point("transitions are sent, not marked", "before", "tables.memories.catalog.ageing:Ageing.mark_published"),
    Point("the analysts' copy is being made", "before", "streams.memory.analytics:assemble"),
    Point("the analysts' copy is made", "after", "streams.memory.analytics:assemble"),
    Point("a changelog is read back", "before", "tables.windows.rows:Rows.restore"),
    Point("a shard is opened", "after", "tables.memories.catalog.catalog:Catalog.__init__", 2),
    Point("shards are compared with the log", "before", "streams.memory.agent:LongTermAgent.catch_up", 2),
    Point("an orderly stop begins to close shards", "before", "tables.memories.shard:Shard.close"),
    Point("an orderly stop has closed a shard", "after", "tables.memories.shard:Shard.close", 2),
)


def found(point: Point) -> tuple[Any, str, Callable[..., Any]]:
    """The module or class that has the point's function, the function's name there, and the function."""
    module, path = point.where.split(":")
    *owners, name = path.split(".")
    owner = pkgutil.resolve_name(":".join([module, ".".join(owners)]) if owners else module)
    return owner, name, getattr(owner, name)


def arm(point: Point, nth: int, mark: Path) -> None:
    """From now on, the `nth` call of the point's function is the last thing that this process does."""
    owner, name, original = found(point)
    calls = count(1)

    def strike() -> None:
        if next(calls) == nth:
            mark.write_text(point.name, encoding="utf-8")
            os.kill(os.getpid(), signal.SIGKILL)

    @wraps(original)
    async def awaited(*given: Any, **named: Any) -> Any:
        if point.when == "before":
            strike()
        answer = await original(*given, **named)
        if point.when == "after":
            strike()
        return answer

    @wraps(original)
    def called(*given: Any, **named: Any) -> Any:
        if point.when == "before":
            strike()
        answer = original(*given, **named)
        if point.when == "after":
            strike()
        return answer

    setattr(owner, name, awaited if inspect.iscoroutinefunction(original) else called)


if __name__ == "__main__":
    _, named, nth, mark, *command = sys.argv
    arm(next(point for point in POINTS if point.name == named), int(nth), Path(mark))
    from tests.support.toy_worker import siltstone

    siltstone(command)
