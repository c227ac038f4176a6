"""When a session's messages are summed up, by event time alone."""

from __future__ import annotations

import gc
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.conversations import ChatMessage, ConversationRecord, SessionEnded, Silence
from schemas.exchanges import Exchange, Message
from schemas.sessions import Session
from schemas.settings import MemorySettings, Settings, SummaryPlan
from streams.intake.rules.advance import Advance
from streams.intake.rules.promotion import Promoter
from streams.intake.rules.session import SessionRules
from streams.intake.rules.summary_trigger_watch import TriggerWatch
from streams.intake.rules.summary_triggers import SummaryWanted, Triggers
from tests.support.making import START, message

DAY = 86_400
NEW_YEAR = date(2026, 1, 1)


def plan(monkeypatch: pytest.MonkeyPatch, **summary: object) -> SummaryPlan:
    for name in ("NANOBOT_SUMMARY_INTERVAL", "NANOBOT_AUTO_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    return Settings.load(agents={"summary": summary}).summaries()


class Talk:
    """A session that is told records, in batches."""

    def __init__(self, of: SummaryPlan) -> None:
        memory = MemorySettings(clock_skew_seconds=0)
        self.rules = SessionRules(memory, Promoter(memory, lambda user, assistant: 0), Triggers(of))
        self.session, self.kept = Session("u", "s"), dict[int, Exchange]()
        self.known, self.offset = set[str](), 0

    def hear(self, *records: ConversationRecord) -> list[SummaryWanted]:
        heard = [Message.of(one) if isinstance(one, ChatMessage) else one for one in records]
        numbered = list(enumerate(heard, self.offset))
        self.offset += len(records)
        out = self.rules.advance(self.session, numbered, known=self.known, exchange=self.kept.__getitem__)
        self.session = out.session
        self.kept |= {exchange.seq: exchange for exchange in out.closed}
        return out.summaries


def said(first: int, count: int, at: int = 0, content: str = "") -> list[ChatMessage]:
    """User and assistant in turn, a second apart."""
    return [message(i, ("user", "assistant")[i % 2], content, at + i) for i in range(first, first + count)]


def ids(wanted: SummaryWanted) -> list[str]:
    return [one.message_id for one in wanted.messages]


@pytest.mark.slow
def test_a_batch_leaves_nothing_to_the_garbage_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts and what is counted know one another while it lasts."""
    talk = Talk(plan(monkeypatch))
    gc.collect()
    gc.disable()
    try:
        talk.hear(*said(0, 30))
        assert [one for one in gc.get_objects() if isinstance(one, (Advance, TriggerWatch))] == []
    finally:
        gc.enable()


def test_ten_user_messages_are_summed_up_and_the_count_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk(plan(monkeypatch))
    assert talk.hear(*said(0, 18)) == []
    (first,) = talk.hear(*said(18, 2))
    assert (first.reason, first.day, first.by) == ("count", NEW_YEAR, "m18")
    assert ids(first) == [f"m{i}" for i in range(19)]
    (second,) = talk.hear(*said(20, 20))
    assert (second.by, ids(second)[:2], len(ids(second))) == ("m38", ["m18", "m19"], 21)


def test_an_interval_of_zero_never_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Talk(plan(monkeypatch, interval=0)).hear(*said(0, 60)) == []


@pytest.mark.parametrize("words", ["总结今天的对话", "请帮我生成每日概要吧", "Could you summarize today, please?"])
def test_who_asks_for_it_gets_it_at_once(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    talk = Talk(plan(monkeypatch))
    (wanted,) = talk.hear(*said(0, 2), message(2, "user", words, at=2))
    assert (wanted.reason, wanted.day, wanted.by) == ("manual", NEW_YEAR, "m2")


def test_only_the_user_can_ask_and_in_few_words(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk(plan(monkeypatch))
    assert (
        talk.hear(message(0, "assistant", "summarize today"), message(1, "user", "x" * 300 + " summarize today"))
        == []
    )


def test_where_it_is_off_only_requests_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NANOBOT_AUTO_SUMMARY", "false")
    of = Settings.load().summaries()
    talk = Talk(of)
    assert talk.hear(*said(0, 40), *said(40, 2, at=DAY)) == []
    (wanted,) = talk.hear(message(42, "user", "总结今天的对话", at=DAY + 42))
    assert wanted.reason == "manual"


def test_a_message_of_the_next_day_ends_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk(plan(monkeypatch))
    talk.hear(*said(0, 4))
    (wanted,) = talk.hear(*said(4, 2, at=DAY))
    assert (wanted.reason, wanted.day, ids(wanted)) == ("day_end", NEW_YEAR, ["m0", "m1", "m2", "m3"])
    assert talk.hear(*said(6, 2, at=DAY)) == []


def test_silence_until_the_end_of_the_day_ends_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk(plan(monkeypatch))
    ended = SessionEnded(type="session_end", user_id="u", session_id="s", timestamp=START + 10_000)
    assert talk.hear(*said(0, 4), ended) == []
    assert talk.session.day_ends == START + DAY * 1000
    silent = Silence(user_id="u", session_id="s", timestamp=talk.session.day_ends)
    (wanted,) = talk.hear(silent)
    assert (wanted.reason, ids(wanted)) == ("day_end", ["m0", "m1", "m2", "m3"])
    assert talk.hear(silent) == []


def test_at_the_days_end_only_what_is_new_since_the_last_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk(plan(monkeypatch, interval=2))
    talk.hear(*said(0, 4))
    (wanted,) = talk.hear(*said(4, 1, at=DAY))
    assert ids(wanted) == ["m2", "m3"]


@pytest.mark.parametrize(("zone", "day"), [("UTC", 0), ("Asia/Shanghai", 1), ("America/New_York", 0)])
def test_days_are_those_of_the_time_zone(monkeypatch: pytest.MonkeyPatch, zone: str, day: int) -> None:
    """At 20:00 in Greenwich it is four in the morning of the next day in Shanghai."""
    talk = Talk(plan(monkeypatch, interval=1, timezone=zone))
    (wanted,) = talk.hear(message(0, at=20 * 3600))
    assert wanted.day == NEW_YEAR + timedelta(days=day)


def test_a_day_on_which_clocks_change_ends_at_midnight(monkeypatch: pytest.MonkeyPatch) -> None:
    """The 29th of March 2026 has 23 hours in Berlin."""
    triggers = Triggers(plan(monkeypatch, timezone="Europe/Berlin"))
    morning = START + 87 * DAY * 1000
    assert triggers.day_of(morning) == date(2026, 3, 29)
    assert triggers.end_of_day(morning) == START + (87 * DAY + 22 * 3600) * 1000


@given(st.lists(st.integers(1, 9), max_size=12))
def test_how_records_come_in_batches_changes_nothing(sizes: list[int]) -> None:
    records = [
        *said(0, 30),
        *said(30, 10, at=DAY),
        message(40, "user", "总结今天的对话", at=DAY + 41),
        *said(41, 9, at=2 * DAY),
    ]
    of = Settings.load().summaries()
    whole, talk, found = Talk(of).hear(*records), Talk(of), list[SummaryWanted]()
    for size in [*sizes, len(records)]:
        batch, records = records[:size], records[size:]
        found += talk.hear(*batch)
    assert found == whole
    assert [wanted.reason for wanted in found] == ["count", "day_end", "manual", "day_end"]


def test_what_was_said_before_a_late_message_is_summed_up_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exchanges that it cuts again get other numbers, and one that was decided on before them keeps its own."""
    talk = Talk(plan(monkeypatch))
    talk.hear(message(0, "user", "请记住", at=0), *said(1, 5, at=0), message(50, at=3))
    (wanted,) = talk.hear(message(6, "user", "总结今天的对话", at=6))
    assert min(talk.session.window) == 0
    assert ids(wanted) == ["m0", "m1", "m2", "m3", "m50", "m4", "m5", "m6"]
