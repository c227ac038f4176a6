"""Said again is said once, and forgotten stays forgotten: whatever is sent again, in any order, after restarts."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from schemas.settings import MemorySettings
from schemas.topics import route_of
from tests.streams.intake.test_agent import Record, Run
from tests.support.examples import examples
from tests.support.making import START

USER = "u"
A_SESSION = st.sampled_from(["s", "t"])


class Told:
    """A worker that is told of one partition, and may be followed by another that has its changelogs."""

    def __init__(self) -> None:
        self.memory = MemorySettings(capacity=3, promote_threshold=2, ttl_seconds=3600, scoring={"policy": "all"})
        self.run = Run(self.memory)
        self.offset = 0
        self.promoted = dict[str, Any]()
        self._rows: tuple[dict[bytes, bytes | None], dict[bytes, bytes | None]] = ({}, {})

    def hear(self, *values: bytes) -> None:
        key = route_of(USER, 1)[0]
        records = [
            Record(self.offset + place, key, value, 0, orjson.loads(value)["timestamp"] + 100)
            for place, value in enumerate(values)
        ]
        self.offset += len(records)
        asyncio.run(self.run.agent.handle(0, records))

    def restart(self) -> None:
        self.promoted = self.promotions
        tables = self.run.store.exchanges, self.run.store.sessions
        for rows, table in zip(self._rows, tables, strict=True):
            rows.update({change.key: change.value for change in table.drain()})  # type: ignore[attr-defined]
        self.run = Run(self.memory)
        for rows, table in zip(self._rows, (self.run.store.exchanges, self.run.store.sessions), strict=True):
            table.restore(0, list(rows.items()))  # type: ignore[attr-defined]
        asyncio.run(self.run.agent.recovered())

    @property
    def promotions(self) -> dict[str, Any]:
        sent = {identity: (one["text"], one["message_ids"]) for identity, one in self.run.promotions.items()}
        assert not sent.keys() & self.promoted.keys(), "promoted twice"
        return self.promoted | sent

    @property
    def windows(self) -> dict[str, list[list[tuple[str, str]]]]:
        """What was said, exchange by exchange, by session."""
        held = {}
        for partition, session in self.run.store.all_sessions():
            window = [one.messages for one in self.run.store.whole_window(partition, session)]
            if window:
                held[session.session_id] = [[(one.message_id, one.content) for one in each] for each in window]
        return held


class SaidAgain(RuleBasedStateMachine):
    """One is told everything once; the other hears things again, restarts, and is told the same."""

    @initialize(known=st.sampled_from([2, 450]))
    def begin(self, known: int) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr("streams.intake.rules.advance.KNOWN_EXCHANGES", known)
        self.once, self.again = Told(), Told()
        self.sent = list[bytes]()
        self.at = 0

    def teardown(self) -> None:
        if hasattr(self, "patch"):
            self.patch.undo()

    def _told(self, fields: dict[str, Any]) -> None:
        value = orjson.dumps({"user_id": USER, "timestamp": START + self.at * 1000, **fields})
        self.once.hear(value)
        self.again.hear(value)
        self.sent.append(value)

    @rule(
        session=A_SESSION,
        role=st.sampled_from(["user", "assistant"]),
        gap=st.sampled_from([31, 50, 200]),
    )
    def say(self, session: str, role: str, gap: int) -> None:
        self.at += gap
        number = len(self.sent)
        self._told({"session_id": session, "role": role, "content": f"said {number}", "message_id": f"m{number}"})

    @rule(session=A_SESSION)
    def end(self, session: str) -> None:
        self.at += 31
        value = {"user_id": USER, "session_id": session, "type": "session_end", "timestamp": START + self.at * 1000}
        self.once.hear(orjson.dumps(value))
        self.again.hear(orjson.dumps(value))

    @rule(chance=st.randoms(use_true_random=False), share=st.sampled_from([0.2, 1.0]))
    def send_again(self, chance: Any, share: float) -> None:
        """Some of it in any order, or a whole export once more."""
        again = [value for value in self.sent if chance.random() < share]
        if share < 1:
            chance.shuffle(again)
        if again:
            self.again.hear(*again)

    @rule()
    def restart(self) -> None:
        self.again.restart()

    @rule(back=st.sampled_from([0, 40, 100_000]))
    def forget_the_user(self, back: int) -> None:
        until = START + max(0, self.at - back) * 1000
        for told in (self.once, self.again):
            told.run.agent.forget_user(0, USER, until)

    @rule(place=st.integers(0, 5))
    def forget_a_memory(self, place: int) -> None:
        named = self.once.run.agent.memories_of(0, USER)
        if named:
            identity = named[place % len(named)][1]
            for told in (self.once, self.again):
                told.run.agent.forget_memories(0, USER, {identity})

    @invariant()
    def it_is_as_if_nothing_was_said_again(self) -> None:
        if hasattr(self, "once"):
            assert self.again.windows == self.once.windows
            assert self.again.promotions == self.once.promotions


SaidAgain.TestCase.settings = settings(
    examples(120, few=15), stateful_step_count=40, suppress_health_check=[HealthCheck.too_slow]
)
test_said_again = SaidAgain.TestCase
