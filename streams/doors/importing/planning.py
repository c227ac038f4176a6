"""The plan of an import (`--dry-run`): the sessions and memories that it would produce, without producing them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from schemas.times import iso
from streams.doors.importing.formats import Format
from streams.doors.importing.found import Found, LeftOut, Problem, Record, TakenFor


@dataclass(slots=True)
class PlannedSession:
    """A session that an import would produce.

    `speakers` has the number of messages by speaker. A speaker is a name or, if a message has no name, a role such as
    `user`. `first` and `last` are the times of the first and the last message (epoch ms).
    """

    user_id: str
    speakers: Counter[str] = field(default_factory=Counter)
    first: int = 0
    last: int = 0

    def add(self, speaker: str, at: int) -> None:
        self.first = min(self.first or at, at)
        self.last = max(self.last, at)
        self.speakers[speaker] += 1


@dataclass(slots=True)
class Plan:
    """The plan of an import: sessions by id, the numbers of memories and of left-out entries, and the problems."""

    format: Format | None = None
    sessions: dict[str, PlannedSession] = field(default_factory=dict)
    memories: int = 0
    left_out: int = 0
    problems: list[Problem] = field(default_factory=list)

    def told(self) -> dict[str, Any]:
        return {
            "format": self.format,
            "sessions": [
                {
                    "session_id": name,
                    "user_id": one.user_id,
                    "messages": one.speakers.total(),
                    "speakers": dict(one.speakers.most_common()),
                    "from": iso(one.first),
                    "to": iso(one.last),
                }
                for name, one in self.sessions.items()
            ],
            "memories": self.memories,
            "left_out": self.left_out,
            "bad": [f"{one.where}: {one.why}" for one in self.problems],
        }


def planned(found: Iterable[Found]) -> Plan:
    """Build the plan of an import from the results of `records.records`."""
    plan = Plan()
    for one in found:
        match one:
            case TakenFor():
                plan.format = one.format
            case LeftOut():
                plan.left_out += one.messages
            case Problem():
                plan.problems.append(one)
            case Record() if one.lasting:
                plan.memories += one.in_file
            case Record():
                said = orjson.loads(one.value)
                if said.get("type") == "session_end":
                    continue
                name = str(said.get("session_id") or said.get("run_id"))
                session = plan.sessions.setdefault(name, PlannedSession(one.user_id))
                session.add(str(said.get("name") or said.get("role")), one.at)
    return plan
