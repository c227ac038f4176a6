"""Exchanges of windows as rows beside those of memories."""

from __future__ import annotations

import numpy as np

from schemas.events import Parts
from schemas.sessions import Session
from streams.intake.agent import promotion
from streams.intake.rules.decision import Decision
from tables.search.candidates import Candidates
from tables.search.held import Sessions
from tables.search.stated import Stated
from tables.search.terms import Terms, counted
from tables.search.text_store import session_number
from tables.search.window_rows import SaidRow, SaidRows, with_said
from tests.support.making import START, spoken


def row(session_id: str, text: str, at: int) -> SaidRow:
    return SaidRows().row("u", session_id, spoken(at, ("user", text), at=at))


def test_ids_and_text_are_those_of_its_promotion() -> None:
    exchange = spoken(3, ("user", "I live in Oslo"), ("assistant", "Nice"), ("system", "be kind"))
    made = SaidRows().row("u", "s", exchange)
    decision = Decision(exchange, True, 80, Parts(reason="all", total=1000))
    event = promotion(Session("u", "s"), decision)
    assert (made.id, made.event_id, made.text) == (event.memory_id, event.event_id, event.text)
    assert (list(made.message_ids), made.counted) == (event.message_ids, counted(event.text))


def test_rows_follow_each_other_in_their_session_by_time_whatever_their_kind() -> None:
    """Memories were said at 0, 20 and 40 seconds, exchanges at 10, 30 and 50; the last one is another session's."""
    sessions = [session_number(name) for name in ("s", "t", "s")]
    memories = Candidates(
        seqs=np.arange(3),
        created_at=START + np.array([0, 20_000, 40_000]),
        importance=np.full(3, 80.0),
        last_accessed=np.full(3, START),
        pinned=np.zeros(3, np.bool_),
        current=np.ones(3, np.bool_),
        previous=np.array([-1, -1, 0]),
        terms=Terms.of(["four", "five", "six"]),
        stated=Stated.of([[], [7], []], [START, START + 20_000, START + 40_000]),
    )
    where = Sessions(np.array(sessions, np.uint64), START + np.array([0, 20_000, 40_000]))
    said = [row("s", "one", 10), row("s", "two", 30), row("new", "three", 50)]
    joint = with_said(memories, where, said)
    assert joint.previous.tolist() == [-1, -1, 4, 0, 3, -1]
    assert joint.seqs.tolist() == [0, 1, 2, -1, -1, -1]
    assert joint.current.all()
    assert not joint.pinned.any()
    assert joint.terms.sizes.tolist() == [1] * 6


def test_terms_are_kept_within_bounds_and_without_what_was_said() -> None:
    rows = SaidRows(most_bytes=5_000)
    for number in range(100):
        rows.row("u", "s", spoken(number, ("user", f"secret {number}")))
    assert rows._terms.held <= 5_000
    assert not any(b"secret" in key for key in rows._terms._values if isinstance(key, bytes))
