"""How a session's window goes on."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from schemas.messages import ConversationRecord, Exchange, SessionEnded, Silence
from schemas.settings import MemorySettings
from streams.rules.promotion import Decision, Promoter
from streams.rules.session import SessionRules
from tables.short_term import Session
from tests.making import START, message


class Window:
    """A session, advanced batch by batch as the agent does it, with everything that came of it."""

    def __init__(self, **memory: Any) -> None:
        settings = MemorySettings(**memory)
        self.rules = SessionRules(settings, Promoter(settings, lambda user, assistant: 5))
        self.session = Session("u", "s")
        self.stored: dict[int, Exchange] = {}
        self.known: set[str] = set()
        self.decisions: list[Decision] = []
        self.offset = self.duplicates = self.replayed = 0

    def hear(self, *records: ConversationRecord) -> Window:
        return self.at([(self.offset + i, record) for i, record in enumerate(records)])

    def at(self, records: list[tuple[int, ConversationRecord]]) -> Window:
        out = self.rules.advance(self.session, records, known=self.known, exchange=self.stored.__getitem__)
        self.session = out.session
        self.stored |= {exchange.seq: exchange for exchange in out.closed}
        for seq in out.gone:
            del self.stored[seq]
        self.known = (self.known | out.heard) - out.left
        self.decisions += out.decisions
        self.duplicates += out.duplicates
        self.replayed += out.replayed
        self.offset = max(self.offset, out.session.offset + 1)
        return self

    @property
    def closed(self) -> list[list[str]]:
        return [[m.message_id for m in self.stored[seq].messages] for seq in self.session.window]


def talk(n: int, start: int = 0, gap: int = 20) -> list[ConversationRecord]:
    """n exchanges of two messages."""
    said: list[ConversationRecord] = []
    for i in range(start, start + n):
        said.append(message(2 * i, "user", at=i * gap))
        said.append(message(2 * i + 1, "assistant", at=i * gap + 5))
    return said


def end(at: int) -> SessionEnded:
    return SessionEnded(type="session_end", user_id="u", session_id="s", timestamp=START + at * 1000)


def test_an_exchange_closes_when_the_role_turns_back_to_user() -> None:
    assert Window().hear(*talk(2)).closed == [["m0", "m1"]]


def test_a_run_of_user_messages_is_one_exchange() -> None:
    said = [message(1), message(2, at=5), message(3, "assistant", at=9), message(4, at=12)]
    assert Window().hear(*said).closed == [["m1", "m2", "m3"]]


def test_silence_of_120_seconds_closes() -> None:
    assert Window().hear(message(1), message(2, at=119)).closed == []
    assert Window().hear(message(1), message(2, at=120)).closed == [["m1"]]


def test_a_noted_silence_closes_and_ends() -> None:
    """The worker's own `silence` does what the next message would have done."""
    quiet = Silence(user_id="u", session_id="s", timestamp=START + 120_000)
    long = Silence(user_id="u", session_id="s", timestamp=START + 1_800_000)
    window = Window().hear(message(1), quiet)
    assert (window.closed, window.session.ended) == ([["m1"]], False)
    assert window.hear(long).session.ended


def test_sixteen_messages_close() -> None:
    window = Window().hear(*(message(i, at=i) for i in range(17)))
    assert [len(ids) for ids in window.closed] == [16]


def test_a_session_end_closes_and_evaluates_everything() -> None:
    window = Window().hear(*talk(3), end(100))
    assert (len(window.closed), len(window.decisions), window.session.pending) == (3, 3, ())
    assert all(decision.parts.fullness == 300 for decision in window.decisions)


def test_idling_ends_the_session_before_the_next_message() -> None:
    window = Window().hear(message(1), message(2, at=1800))
    assert (window.closed, window.session.exchanges, len(window.decisions)) == ([["m1"]], 0, 1)


def test_ten_exchanges_promote_nothing_and_the_eleventh_decides_on_the_oldest() -> None:
    window = Window().hear(*talk(11))  # ten are closed, the eleventh is open
    assert window.decisions == []
    window.hear(*talk(1, start=11))
    assert [decision.exchange.seq for decision in window.decisions] == [0]


def test_a_forced_exchange_is_decided_once() -> None:
    window = Window().hear(message(1, content="请记住我叫小明"), message(2, "assistant", at=5), end(9), end(10))
    assert [decision.parts.reason for decision in window.decisions] == ["forced"]


def test_what_leaves_by_capacity_is_evaluated() -> None:
    window = Window(capacity=3, promote_threshold=100).hear(*talk(6))
    assert [decision.exchange.seq for decision in window.decisions] == [0, 1]
    assert len(window.stored) == 3


def test_what_expires_leaves_and_is_evaluated() -> None:
    """At exactly its time to live an exchange has expired."""
    window = Window(ttl_seconds=60, promote_threshold=100).hear(*talk(5, gap=30))
    assert [decision.exchange.seq for decision in window.decisions] == [0, 1]


def test_a_message_id_in_the_window_is_a_retry() -> None:
    window = Window().hear(message(1), message(1), message(2, "assistant", at=5))
    assert (window.duplicates, len(window.session.open)) == (1, 2)


def test_system_and_tool_messages_alone_are_never_evaluated() -> None:
    window = Window().hear(message(1, "system"), message(2, "tool", at=1), end(2))
    assert (window.closed, window.decisions) == ([["m1", "m2"]], [])


def test_records_that_are_in_already_are_skipped() -> None:
    records = list(enumerate(talk(4)))
    window = Window().at(records)
    before = window.session
    assert window.at(records).session == before
    assert window.replayed == len(records)


@given(st.lists(st.sampled_from(["u", "a", "s", "gap", "idle", "end", "again"]), max_size=60), st.data())
def test_batches_may_be_cut_anywhere(kinds: list[str], data: st.DataObject) -> None:
    """However the same records are cut into batches, the window and the decisions are the same."""
    said: list[ConversationRecord] = []
    at = 0
    for i, kind in enumerate(kinds):
        at += {"gap": 130, "idle": 2000}.get(kind, 7)
        role = {"a": "assistant", "s": "system"}.get(kind, "user")
        said.append(end(at) if kind == "end" else message(i // 2 if kind == "again" else i, role, at=at))
    records = list(enumerate(said))
    whole, cut = Window(capacity=4, promote_threshold=2), Window(capacity=4, promote_threshold=2)
    whole.at(records)
    start = 0
    while start < len(records):
        size = data.draw(st.integers(1, 10))
        cut.at(records[start : start + size])
        start += size
    assert (cut.session, cut.stored, cut.decisions) == (whole.session, whole.stored, whole.decisions)
