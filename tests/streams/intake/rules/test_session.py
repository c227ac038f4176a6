"""How a session's window goes on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.conversations import ChatMessage, ConversationRecord, SessionEnded, Silence
from schemas.exchanges import Emptied, Exchange, Message
from schemas.sessions import Session
from schemas.settings import MemorySettings, ScoringSettings
from streams.intake.rules.advance import SessionInput
from streams.intake.rules.decision import Decision
from streams.intake.rules.promotion import Promoter
from streams.intake.rules.session import SessionRules
from tables.windows.short_term import ShortTermStore
from tests.support.examples import examples
from tests.support.making import START, message


def as_input(records: Iterable[tuple[int, ConversationRecord]]) -> list[tuple[int, SessionInput]]:
    """The records as the rules are told them."""
    return [(offset, Message.of(one) if isinstance(one, ChatMessage) else one) for offset, one in records]


class Window:
    """A session, advanced batch by batch as the agent does it, with everything that came of it.

    Its clocks agree, where a test does not say otherwise: what is late by a second is late.
    """

    def __init__(self, **memory: Any) -> None:
        settings = MemorySettings(**{"clock_skew_seconds": 0, **memory})
        self.rules = SessionRules(settings, Promoter(settings, lambda user, assistant: 5))
        self.session = Session("u", "s")
        self.stored: dict[int, Exchange] = {}
        self.emptied: dict[int, Emptied] = {}
        self.known: set[str] = set()
        self.decisions: list[Decision] = []
        self.questions: list[Exchange] = []
        self.offset = self.duplicates = self.replayed = self.exchanges = 0

    def hear(self, *records: ConversationRecord) -> Window:
        return self.at([(self.offset + i, record) for i, record in enumerate(records)])

    def at(self, records: list[tuple[int, ConversationRecord]]) -> Window:
        out = self.rules.advance(
            self.session,
            as_input(records),
            known=self.known,
            exchange=self.stored.__getitem__,
            emptied=self.emptied.get,
        )
        self.session = out.session
        self.stored |= {exchange.seq: exchange for exchange in out.closed}
        self.emptied |= out.left
        for seq in out.gone:
            del self.stored[seq]
        for seq in out.unknown:
            del self.emptied[seq]
        self.decisions += out.decisions
        self.questions = out.questions
        self.exchanges += out.exchanges
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


def seqs(window: Window) -> list[int]:
    return [decision.exchange.seq for decision in window.decisions]


def test_a_session_that_nobody_heard_of_ends_without_a_trace() -> None:
    window = Window().hear(end(0))
    assert (window.closed, window.decisions, window.session.ended) == ([], [], True)


def test_the_open_exchange_is_in_no_window_yet() -> None:
    window = Window().hear(message(1))
    assert (window.closed, [m.message_id for m in window.session.open]) == ([], ["m1"])


def test_the_session_goes_on_after_less_than_half_an_hour() -> None:
    """1799 seconds close the exchange; one more ends the session."""
    assert not Window().hear(message(1), message(2, at=1799)).decisions
    assert len(Window().hear(message(1), message(2, at=1800)).decisions) == 1


def test_a_session_counts_anew_after_its_end() -> None:
    """Its window stays, and its exchanges are numbered on."""
    window = Window().hear(*talk(3), end(100), *talk(2, start=10))
    assert (window.session.exchanges, window.session.ended) == (1, False)
    assert list(window.session.window) == [0, 1, 2, 3]


def test_what_was_evaluated_is_not_evaluated_again() -> None:
    """Neither by another end of the session, nor when it leaves the window."""
    window = Window(capacity=2).hear(*talk(2), end(100), end(101), *talk(3, start=10), end(400))
    assert sorted(seqs(window)) == [0, 1, 2, 3, 4]


def test_each_exchange_after_the_tenth_decides_on_one() -> None:
    window = Window().hear(*talk(14))  # 13 are closed
    assert (seqs(window), window.session.pending) == ([0, 1, 2], tuple(range(3, 13)))


def test_the_oldest_is_scored_by_the_length_of_the_session_and_not_as_leaving() -> None:
    window = Window(promote_threshold=4, capacity=50).hear(*talk(6))
    assert [(decision.parts.fullness, decision.parts.reason) for decision in window.decisions] == [(300, "low_score")]


def test_a_forced_exchange_lets_the_older_ones_go_on() -> None:
    """It is written at once; the oldest one that waits is scored, as at any other close."""
    said = talk(11)
    said[20] = message(20, content="please remember my birthday", at=200)
    window = Window().hear(*said, message(99, at=300))
    assert [(d.exchange.seq, d.parts.reason) for d in window.decisions] == [(10, "forced"), (0, "low_score")]


def test_policy_all_keeps_each_exchange_as_it_closes() -> None:
    window = Window(scoring=ScoringSettings(policy="all")).hear(*talk(4), end(100))
    assert [(decision.exchange.seq, decision.importance) for decision in window.decisions] == [
        (seq, 85) for seq in range(4)
    ]


def test_a_window_holds_50_exchanges() -> None:
    window = Window().hear(*talk(60), end(60 * 20))
    assert list(window.session.window) == list(range(10, 60))
    assert sorted(seqs(window)) == list(range(60))


def test_what_leaves_counts_as_full() -> None:
    window = Window(capacity=1, promote_threshold=100).hear(*talk(3))
    assert [(d.exchange.seq, d.parts.fullness) for d in window.decisions] == [(0, 300)]


def test_an_exchange_expires_at_exactly_its_time_to_live() -> None:
    """Counted from its last message to the last message of the exchange that closed now."""
    early = [message(1), message(2, "assistant", at=5)]
    for gap, left in ((59, []), (60, [0])):
        window = Window(ttl_seconds=60).hear(
            *early, message(3, at=5 + gap), message(4, "system", at=5 + gap), end(70)
        )
        assert [seq for seq in (0, 1) if seq not in window.session.window] == left


def test_a_retry_is_known_when_its_exchange_has_left_the_window() -> None:
    window = Window(capacity=2).hear(*talk(2), message(1, "assistant", at=50))
    assert window.duplicates == 1
    window.hear(*talk(3, start=10), message(0, at=500))
    assert (window.duplicates, window.session.open[-1].message_id) == (2, "m25")


def test_a_session_that_is_said_again_changes_nothing() -> None:
    """As at-least-once producers do it, and agents after a restart: longer than a window, and out of it."""
    said = talk(60)
    window = Window(capacity=50).hear(*said)
    before = (window.session._replace(offset=0), dict(window.stored), len(window.decisions))
    window.hear(*said).hear(*reversed(said))
    assert (window.session._replace(offset=0), window.stored, len(window.decisions)) == before
    assert window.duplicates == 240


def test_what_left_long_ago_is_known_by_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the rest its ids are known, and none of them is kept for ever."""
    monkeypatch.setattr("streams.intake.rules.advance.KNOWN_EXCHANGES", 4)
    window = Window(capacity=2).hear(*talk(12))
    assert sorted(window.emptied) == [5, 6, 7, 8]
    assert window.session.horizon == START + 4 * 20_000 + 5_000
    assert len(window.known) == 2 * 7
    window.hear(*talk(12), message(90, at=11), message(91, at=101))
    assert window.duplicates == 25
    assert window.closed[-1] == ["m91"], "of between those that are known it is late, and new"


def test_a_retry_is_known_without_an_id() -> None:
    """Its id is what it says."""
    said = message(1, message_id=None)
    assert Window().hear(said, said).duplicates == 1


def test_a_retry_after_a_long_time_does_not_end_the_session() -> None:
    window = Window().hear(message(1), message(1, at=5000))
    assert (window.duplicates, window.session.ended, window.decisions) == (1, False, [])


def test_an_overlap_is_skipped_and_the_rest_is_heard() -> None:
    """After a restart the records since the last commit come again."""
    records = list(enumerate(talk(4)))
    window = Window().at(records[:5]).at(records[2:])
    assert (window.replayed, window.session) == (3, Window().at(records).session)


def test_a_message_that_comes_late_moves_no_time_back() -> None:
    """Producers' clocks differ."""
    window = Window().hear(message(1, at=100), message(2, at=10))
    assert ([m.message_id for m in window.session.open], window.session.last_at) == (["m2", "m1"], START + 100_000)


def test_tool_messages_stay_with_the_exchange_they_belong_to() -> None:
    said = [
        message(1),
        message(2, "tool", at=1),
        message(3, "assistant", at=2),
        message(4, "system", at=3),
        message(5, at=4),
    ]
    assert Window().hear(*said).closed == [["m1", "m2", "m3", "m4"]]


def test_exchanges_of_tools_alone_do_not_count() -> None:
    """Ten of them and one that was spoken are a session of one exchange."""
    said: list[ConversationRecord] = [message(i, "tool", at=i * 130) for i in range(10)]
    window = Window(promote_threshold=0).hear(*said, message(99, at=1400), message(100, at=1600))
    assert (window.session.exchanges, seqs(window)) == (1, [10])


def heard(kinds: list[str]) -> list[tuple[int, ConversationRecord]]:
    """A conversation of turns, pauses, retries and ends, as records with their offsets."""
    said: list[ConversationRecord] = []
    at = 0
    for i, kind in enumerate(kinds):
        at += {"gap": 130, "idle": 2000, "late": -300}.get(kind, 7)
        role = {"a": "assistant", "s": "system"}.get(kind, "user")
        if kind == "end":
            said.append(end(at))
        elif kind == "quiet":
            said.append(Silence(user_id="u", session_id="s", timestamp=START + (at + 1800) * 1000))
        else:
            said.append(message(i // 2 if kind == "again" else i, role, "记住" if kind == "please" else "", at=at))
    return list(enumerate(said))


def ended_at(*records: ConversationRecord, before: Session | None = None) -> int | None:
    """Seconds after START at which these records end the session."""
    window = Window()
    session = before or window.session
    out = window.rules.advance(session, as_input(enumerate(records)), known=set(), exchange=window.stored.__getitem__)
    return None if out.ended_at is None else (out.ended_at - START) // 1000


def quiet(until: int) -> Silence:
    return Silence(user_id="u", session_id="s", timestamp=START + until * 1000)


def test_a_session_ends_when_it_is_said_or_when_silence_is_half_an_hour_old() -> None:
    """However late the silence is noted, and by a message that comes after it too."""
    assert ended_at(message(1, at=5), message(2, at=1804)) is None
    assert ended_at(message(1, at=5), end(9)) == 9
    assert ended_at(message(1, at=5), quiet(1804)) is None
    assert ended_at(message(1, at=5), quiet(9999)) == 1805
    assert ended_at(message(1, at=5), message(2, at=9999)) == 1805


def test_a_session_that_goes_on_in_the_same_batch_has_ended_all_the_same() -> None:
    """When it ended first."""
    assert ended_at(message(1, at=5), end(9), message(2, at=10), end(20), message(3, at=21)) == 9


def test_an_end_that_comes_late_is_no_earlier_than_the_last_word() -> None:
    assert ended_at(message(1, at=5), end(2)) == 5


def test_silence_ends_a_session_once() -> None:
    over = Session("u", "s", last_at=START, ended=True)
    assert ended_at(quiet(9999), before=over) is None
    assert ended_at(quiet(9999), before=Session("u", "s")) is None


KINDS = st.sampled_from(["u", "a", "u", "a", "s", "gap", "idle", "end", "again", "late", "quiet", "please"])


@pytest.mark.slow
@examples(150)
@given(st.lists(KINDS, min_size=12, max_size=50), st.data())
def test_a_crash_anywhere_changes_nothing(kinds: list[str], data: st.DataObject) -> None:
    """Tables are written now and then; after a crash they are as they were, and records are read again.

    Window, session and known ids are those of an undisturbed run. So are the decisions: one that is made again
    is the same, and leads to the same ids.
    """
    records = heard(kinds)
    undisturbed = Window(capacity=3, promote_threshold=2).at(records)
    rules = undisturbed.rules
    changelogs: tuple[dict[tuple[int, bytes], bytes | None], ...] = ({}, {})
    store, decisions, start, committed = ShortTermStore(), list[Decision](), 0, 0

    def restored() -> ShortTermStore:
        fresh = ShortTermStore()
        for changelog, rows in zip(changelogs, (fresh.exchanges, fresh.sessions), strict=True):
            for (partition, key), value in changelog.items():
                rows.restore(partition, [(key, value)])  # type: ignore[attr-defined]
        fresh.recovered()
        return fresh

    while start < len(records):
        batch = records[start : start + data.draw(st.integers(1, 8))]
        session = store.session(0, "u", "s")
        out = rules.advance(
            session,
            as_input(batch),
            known=store.message_ids(0, session),
            exchange=lambda seq, held=store, of=session: held.exchange(0, of, seq),  # type: ignore[misc]
            emptied=store.emptied_of(0, session),
        )
        store.save(0, out.session, out.closed, out.gone, out.left, out.unknown)
        decisions += out.decisions
        start += len(batch)
        match data.draw(st.sampled_from(["go on", "commit", "crash", "crash before sessions are written"])):
            case "commit":
                for changelog, rows in zip(changelogs, (store.exchanges, store.sessions), strict=True):
                    changelog.update({(change.partition, change.key): change.value for change in rows.drain()})  # type: ignore[attr-defined]
                committed = start
            case "crash":
                store, start = restored(), data.draw(st.integers(0, committed))
            case "crash before sessions are written":
                for change in store.exchanges.drain():
                    if change.value is not None:  # deletions come last
                        changelogs[0][change.partition, change.key] = change.value
                store, start = restored(), committed
    session = store.session(0, "u", "s")
    assert session == undisturbed.session
    assert {held.seq: held for held in store.window(0, session)} == undisturbed.stored
    rows = {key.rpartition(b"]")[2]: held for _, key, held in store.exchanges.items()}
    assert rows == {b"%d" % seq: held for seq, held in undisturbed.stored.items()} | {
        b"~%d" % seq: held for seq, held in undisturbed.emptied.items()
    }
    assert store.message_ids(0, session) == undisturbed.known
    assert {decision.exchange.seq: decision for decision in decisions} == {
        decision.exchange.seq: decision for decision in undisturbed.decisions
    }
    assert all(decision in undisturbed.decisions for decision in decisions)


@given(st.lists(KINDS, max_size=60))
def test_nothing_leaves_unevaluated(kinds: list[str]) -> None:
    """Whatever is said, every spoken exchange was decided on once, or waits in the window."""
    window = Window(capacity=3, promote_threshold=2).at(heard(kinds))
    waiting = window.session.pending
    decided = seqs(window)
    assert len(set(decided)) == len(decided)
    assert not set(decided) & set(waiting)
    assert set(waiting) <= set(window.session.window)
    unspoken = {seq for seq, held in window.stored.items() if not held.spoken}
    inside = set(window.session.window) - unspoken
    assert inside <= {*decided, *waiting}
    assert all(decision.exchange.spoken for decision in window.decisions)


def test_a_late_message_is_placed_by_its_time() -> None:
    """The answer and the next question came before it."""
    window = Window().hear(message(2, "assistant", at=5), message(3, at=10), message(1, at=0), message(0, at=-5))
    assert window.closed == [["m0", "m1", "m2"]]
    assert [said.message_id for said in window.session.open] == ["m3"]


def test_a_message_older_than_what_was_decided_on_is_an_exchange_of_its_own() -> None:
    window = Window().hear(*talk(2), end(100), message(9, at=1))
    assert window.closed == [["m0", "m1"], ["m2", "m3"], ["m9"]]
    assert len(window.decisions) == 3


def test_what_is_forgotten_is_not_decided_on() -> None:
    """Exchanges that began up to the moment leave, the open one loses its words; what comes later goes on as ever."""
    window = Window(promote_threshold=0).hear(*talk(3), message(6, at=70))
    for until, closed, still_open in [(21, [["m4", "m5"]], ["m6"]), (69, [], ["m6"]), (70, [], [])]:
        out = window.rules.forgotten(window.session, START + until * 1000, window.stored.__getitem__)
        left = [[m.message_id for m in window.stored[seq].messages] for seq in out.session.window]
        assert (left, [m.message_id for m in out.session.open]) == (closed, still_open)
        assert set(out.session.pending) <= set(out.session.window)
        assert set(out.gone) == set(window.stored) - set(out.session.window)


@given(st.integers(0, 300))
def test_a_session_goes_on_after_any_forgetting(until: int) -> None:
    window = Window().hear(*talk(12))
    out = window.rules.forgotten(window.session, START + until * 1000, window.stored.__getitem__)
    decided = len(window.decisions)
    window.session = out.session
    window.stored = {seq: held for seq, held in window.stored.items() if seq not in out.gone}
    window.hear(*talk(3, start=20), end(900))
    after = [decision.exchange.started_at for decision in window.decisions[decided:]]
    assert all(at > START + until * 1000 for at in after)
    assert after[-3:] == [START + i * 20_000 for i in (20, 21, 22)]


def test_a_session_goes_on_when_its_latest_exchange_is_forgotten_and_older_ones_are_not() -> None:
    """One that was said early and came late has the highest number."""
    window = Window().hear(*talk(3, start=5), end(200), message(99, at=1))
    out = window.rules.forgotten(window.session, START + 2000, window.stored.__getitem__)
    assert (out.gone, list(out.session.window)) == ([3], [0, 1, 2])
    window.session, window.stored = out.session, {seq: window.stored[seq] for seq in out.session.window}
    window.hear(message(100, at=210), message(101, at=3), end(220))
    assert window.closed == [["m10", "m11"], ["m12", "m13"], ["m14", "m15"], ["m101"], ["m100"]]


def test_a_forgetting_reaches_as_far_as_messages_are_dated_ahead() -> None:
    """Exchanges begin at 0, 20 and 40; with 20 seconds ahead, those up to 21 leave."""
    window = Window().hear(*talk(3), end(50))
    ahead = window.session._replace(lead=20_000)
    assert window.rules.forgotten(ahead, START + 1000, window.stored.__getitem__).gone == [0, 1]
    assert window.rules.forgotten(window.session, START + 1000, window.stored.__getitem__).gone == [0]


def test_what_was_forgotten_has_left_by_its_end() -> None:
    """A message that comes late and is older is no part of what follows."""
    window = Window().hear(*talk(3))
    for until, left_at in [(21, 25), (-1, None)]:
        out = window.rules.forgotten(window.session, START + until * 1000, window.stored.__getitem__)
        assert out.session.left_at == (window.session.left_at if left_at is None else START + left_at * 1000)


def test_a_late_message_goes_into_the_oldest_exchange_that_is_undecided() -> None:
    window = Window(promote_threshold=2).hear(*talk(4))
    assert seqs(window) == [0]
    assert window.hear(message(9, at=22)).closed == [["m0", "m1"], ["m2", "m9", "m3"], ["m4", "m5"]]


def test_a_late_message_by_itself_counts_as_leaving() -> None:
    late = Window().hear(*talk(2), end(100), message(9, at=1)).decisions[-1]
    assert (late.exchange.messages[0].message_id, late.parts.fullness) == ("m9", 300)


def test_a_late_message_by_itself_can_ask_to_be_remembered() -> None:
    late = Window().hear(*talk(2), end(100), message(9, "user", "请记住", at=1)).decisions[-1]
    assert (late.kept, late.parts.reason) == (True, "forced")


def test_after_a_late_message_a_user_who_speaks_after_the_assistant_starts_anew() -> None:
    window = Window().hear(message(0, at=0), message(1, "assistant", at=5), message(2, at=2), message(3, at=10))
    assert window.closed == [["m0", "m2", "m1"]]


def test_a_late_message_that_makes_no_exchange_more_counts_none_and_decides_nothing() -> None:
    window = Window(promote_threshold=1).hear(*talk(4))
    before = (window.session.exchanges, window.exchanges, len(window.decisions))
    window.hear(message(9, at=42))
    assert window.closed[-1] == ["m4", "m9", "m5"]
    assert (window.session.exchanges, window.exchanges, len(window.decisions)) == before == (3, 3, 2)


def test_a_late_message_that_makes_two_exchanges_of_one_counts_one_more_and_decides_on_the_oldest() -> None:
    """In the same batch as the exchange that it splits, and in the next one."""
    said = [message(0, at=0), message(1, at=10), message(2, "assistant", at=15), message(3, at=20)]
    late = message(9, "assistant", at=5)
    for window in (
        Window(promote_threshold=1).hear(*said, late),
        Window(promote_threshold=1).hear(*said).hear(late),
    ):
        assert window.closed == [["m0", "m9"], ["m1", "m2"]]
        assert (window.session.exchanges, window.exchanges) == (2, 2)
        assert [[m.message_id for m in one.exchange.messages] for one in window.decisions] == [["m0", "m9"]]


def asking(**memory: Any) -> Window:
    """A window whose ratings somebody has to be asked for, always."""
    settings = MemorySettings(scoring=ScoringSettings(policy="llm"), **memory)
    window = Window()
    window.rules = SessionRules(settings, Promoter(settings, None))
    return window


def test_what_is_asked_about_is_decided_by_the_answer() -> None:
    window = asking().hear(*talk(2), end(100))
    assert (window.session.asked, [one.seq for one in window.questions], window.decisions) == ((0, 1), [0, 1], [])
    out = window.rules.answered(window.session, window.stored[0], 9)
    assert (out.session.asked, out.gone) == ((1,), [])
    assert [(one.exchange.seq, one.kept, one.importance) for one in out.decisions] == [(0, True, 90)]


def test_an_exchange_that_is_asked_about_goes_with_the_answer_once_it_has_left_the_window() -> None:
    window = asking(ttl_seconds=60).hear(*talk(1), end(30), *talk(1, start=5))
    window.hear(end(200))
    assert (list(window.session.window), window.session.asked, sorted(window.stored)) == ([1], (0, 1), [0, 1])
    assert window.rules.answered(window.session, window.stored[0], None).gone == [0]


def test_no_more_are_asked_about_than_a_window_holds() -> None:
    """The oldest counts as one that nobody could tell."""
    window = asking(promote_threshold=0, capacity=2).hear(*talk(4), end(100))
    assert window.session.asked == (2, 3)
    assert [(one.exchange.seq, one.parts.reason) for one in window.decisions] == [(0, "unrated"), (1, "unrated")]


def test_it_is_counted_what_records_made_of_a_session_and_which_of_them_decided() -> None:
    """Two exchanges that the end decides on, and two messages that are too late for either."""
    window = Window()
    records = as_input(enumerate([*talk(2), end(100), message(8, at=2), message(9, at=1)]))
    out = window.rules.advance(window.session, records, known=set(), exchange=window.stored.__getitem__)
    assert (out.messages, out.exchanges, out.late, out.duplicates) == (6, 4, 2, 0)
    assert [(one.exchange.seq, offset) for one, offset in zip(out.decisions, out.decided_by, strict=True)] == [
        (0, 4),
        (1, 4),
        (2, 5),
        (3, 6),
    ]


def test_a_message_is_too_late_up_to_the_end_of_what_was_decided_on_last() -> None:
    """Which was at 25: what was said then goes with what is open, and what was said before is by itself."""
    window = Window().hear(*talk(2), end(100), message(7, at=110), message(9, at=24), message(8, at=25))
    assert window.closed == [["m0", "m1"], ["m2", "m3"], ["m9"]]
    assert [said.message_id for said in window.session.open] == ["m8", "m7"]


def test_an_exchange_that_began_at_the_moment_of_a_forgetting_goes_with_it() -> None:
    window = Window().hear(*talk(3), end(50))
    assert window.rules.forgotten(window.session, START + 20_000, window.stored.__getitem__).gone == [0, 1]
    assert window.rules.forgotten(window.session, START + 19_999, window.stored.__getitem__).gone == [0]


def test_an_exchange_that_leaves_in_the_batch_that_asks_about_it_is_held_all_the_same() -> None:
    window = asking(ttl_seconds=60).hear(*talk(1), end(30), *talk(1, start=5), end(200))
    assert (list(window.session.window), window.session.asked, sorted(window.stored)) == ([1], (0, 1), [0, 1])


#: Of a phone, and of the server that stamps the answers: seconds ahead.
OFF = st.integers(-15, 15)


@given(OFF, OFF, st.lists(st.integers(1, 80), min_size=2, max_size=40), st.data())
def test_clocks_that_differ_pair_no_answer_with_another_question(
    user: int, assistant: int, gaps: list[int], data: st.DataObject
) -> None:
    """Each speaker's clock is off by a quarter of a minute at the most: the exchanges are as with true clocks."""
    roles = data.draw(st.lists(st.sampled_from(["user", "assistant"]), min_size=len(gaps), max_size=len(gaps)))
    at, true, stamped = 0, [], []
    for number, (role, gap) in enumerate(zip(roles, gaps, strict=True)):
        at += gap
        true.append(message(number, role, at=at))
        stamped.append(message(number, role, at=at + (user if role == "user" else assistant)))
    expected = Window(clock_skew_seconds=30).hear(*true, end(at + 100))
    found = Window(clock_skew_seconds=30).hear(*stamped, end(at + 100))
    assert found.closed == expected.closed


def test_a_phone_that_is_ahead_of_the_server_is_answered() -> None:
    """By ten seconds: by its times alone each answer stands before its question."""
    said = []
    for number in range(4):
        said.append(message(2 * number, "user", at=60 * number + 10))
        said.append(message(2 * number + 1, "assistant", at=60 * number + 4))
    window = Window(clock_skew_seconds=30).hear(*said, end(300))
    assert window.closed == [["m0", "m1"], ["m2", "m3"], ["m4", "m5"], ["m6", "m7"]]
    for held in window.stored.values():
        times = [one.timestamp for one in held.messages]
        assert times == sorted(times)
    without = Window(clock_skew_seconds=0).hear(*said, end(300))
    assert without.closed != window.closed


def test_what_is_older_than_clocks_differ_is_late() -> None:
    """It is placed by its time, as ever."""
    window = Window(clock_skew_seconds=30).hear(message(1, "assistant", at=40), message(2, at=50), message(0, at=5))
    assert window.closed == [["m0", "m1"]]
    (open_one,) = window.session.open
    assert (open_one.message_id, open_one.timestamp) == ("m2", START + 50_000)
