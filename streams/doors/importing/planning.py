"""Preview of an import: the sessions and memories of a file, without producing anything."""

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
    """The number of messages of a session by speaker, and the times of its first and last message (epoch ms).

    A speaker is a name or, if the message has none, a role: user, assistant, system or tool.
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
    """The messages that an import would produce, by session, and its memories, left-out entries and problems."""

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
    """Build the plan from the results of `records`."""
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
