"""What became of each exchange of a session, in words: of every policy and every status."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.conversations import ConversationRecord, Role
from schemas.exchanges import Exchange
from schemas.ids import memory_id
from schemas.sessions import Session
from schemas.settings import MemorySettings, ScoringSettings
from streams.intake.rules.decision import Estimator
from streams.intake.rules.decision_wording import lasting
from streams.intake.rules.explaining import Explainer, Explanation, Status, Waits
from tests.streams.intake.rules.test_session import Window, end, talk
from tests.support.making import START, exchange, message, spoken

FIVE = "the local estimator"
NOTHING: dict[int, int] = {}


def explainer(policy: str = "weighted", estimator: Estimator | None = None, **memory: Any) -> Explainer:
    """Without an estimator that answers at once, it is a model named m."""
    settings = MemorySettings(scoring=ScoringSettings.model_validate({"policy": policy}), **memory)
    return Explainer(settings, estimator, "m" if estimator is None else FIVE)


def always(value: int) -> Estimator:
    return lambda user, assistant: value


def decided(explaining: Explainer, said: Exchange, value: int | None = None) -> Explanation:
    """Of a closed exchange that waits for nothing."""
    session = Session("u", "s", first=said.seq, next=said.seq + 1, ended=True)
    (explained,) = explaining.explain(session, [said], NOTHING if value is None else {said.seq: value})
    return explained


def told(explanation: Explanation) -> tuple[str, str, str]:
    return explanation.status.value, explanation.why, explanation.change


def test_what_is_dropped_unasked_says_what_would_have_had_it_rated() -> None:
    assert told(decided(explainer(), exchange("hm"))) == (
        "dropped",
        "Dropped: fullness 0.30 + emotion 0 + content 0 = 0.30 ≤ 0.50, and the judge adds at most 0.10.",
        "A strong emotion, or content, would let the judge decide; both would keep it.",
    )


def test_what_is_kept_unasked_says_what_would_have_had_it_rated() -> None:
    assert told(decided(explainer(), exchange("I like tea", emotion="sad"))) == (
        "promoted",
        "Promoted: fullness 0.30 + emotion 0.20 + content 0.20 = 0.70 > 0.50, regardless of the judge.",
        "Without the strong emotion, or without its content, the judge would decide.",
    )


def test_a_value_that_dropped_says_which_would_have_kept() -> None:
    assert told(decided(explainer(estimator=always(0)), exchange("I like tea"))) == (
        "dropped",
        "Dropped: the local estimator gave it 0 of 10: "
        "fullness 0.30 + emotion 0 + content 0.20 + value 0 = 0.50 ≤ 0.50.",
        "A value of 1 or more would keep it; so would a strong emotion.",
    )


def test_of_a_feeling_the_content_is_what_is_missing() -> None:
    explained = decided(explainer(estimator=always(0)), exchange("hm", emotion="sad"))
    assert explained.change == "A value of 1 or more would keep it; so would content."


def test_a_value_that_kept_says_which_would_have_dropped() -> None:
    explained = decided(explainer(estimator=always(6)), exchange("I like tea"))
    assert told(explained) == (
        "promoted",
        "Promoted: the local estimator gave it 6 of 10: "
        "fullness 0.30 + emotion 0 + content 0.20 + value 0.06 = 0.56 > 0.50.",
        "A value of 0 would drop it.",
    )
    assert explained.importance == 76
    assert explained.parts is not None
    assert (explained.parts.value, explained.parts.total, explained.parts.reason) == (6, 560, "judged_important")


@pytest.mark.parametrize("policy", ["weighted", "llm", "all"])
def test_a_remember_phrase_explains_itself(policy: str) -> None:
    explained = decided(explainer(policy), exchange("请记住我的生日"))
    assert told(explained) == (
        "promoted",
        "Promoted: the user asked to remember it.",
        "Without the remember phrase it would be scored like any other.",
    )
    assert explained.importance == 100


@pytest.mark.parametrize(
    ("value", "status", "change"),
    [
        (6, "dropped", "A value of 7 or more would keep it."),
        (7, "promoted", "A value of 6 or less would drop it."),
    ],
)
def test_policy_llm_goes_by_the_value_alone(value: int, status: str, change: str) -> None:
    why = f"{status.capitalize()}: m gave it {value} of 10, and policy llm keeps values from 7 on."
    assert told(decided(explainer("llm"), exchange("hm"), value)) == (status, why, change)


def test_policy_all_keeps_by_itself() -> None:
    explained = decided(explainer("all"), exchange("hm"), 4)
    assert told(explained) == (
        "promoted",
        "Promoted: policy all keeps every exchange; m gave it 4 of 10.",
        "Under another policy (memory.scoring.policy) it would be scored.",
    )
    assert explained.importance == 82


@pytest.mark.parametrize(
    ("policy", "status", "why", "change"),
    [
        (
            "weighted",
            "dropped",
            "Dropped: {unknown}: fullness 0.30 + emotion 0 + content 0.20 = 0.50 ≤ 0.50.",
            "A value of 1 or more would keep it; so would a strong emotion.",
        ),
        (
            "llm",
            "dropped",
            "Dropped: {unknown}, and policy llm keeps values from 7 on.",
            "A value of 7 or more would keep it.",
        ),
        (
            "all",
            "promoted",
            "Promoted: policy all keeps every exchange; {unknown}.",
            "Under another policy (memory.scoring.policy) it would be scored.",
        ),
    ],
)
def test_a_value_that_is_missing_is_said_to_be(policy: str, status: str, why: str, change: str) -> None:
    """What was decided on without its value counts as 0, and the explanation does not hide it."""
    unknown = "there is no value from m (it did not answer, or was not the judge yet), which counts as 0"
    assert told(decided(explainer(policy), exchange("I like tea"))) == (status, why.format(unknown=unknown), change)


@pytest.mark.parametrize(
    ("policy", "why", "change"),
    [
        (
            "weighted",
            "Asked about: fullness 0.30 + emotion 0 + content 0.20 = 0.50 is close enough to 0.50 "
            "that the value from m decides.",
            "A value of 1 or more would keep it; so would a strong emotion.",
        ),
        (
            "llm",
            "Asked about: under policy llm the value from m decides.",
            "A value of 7 or more would keep it.",
        ),
        (
            "all",
            "Asked about: policy all keeps it, and the value from m sets its importance.",
            "Under another policy (memory.scoring.policy) it would be scored.",
        ),
    ],
)
def test_what_is_asked_about_says_which_value_keeps_it(policy: str, why: str, change: str) -> None:
    said = exchange("I like tea")
    (explained,) = explainer(policy).explain(Session("u", "s", next=1, asked=(0,)), [said], NOTHING)
    assert told(explained) == ("asked", why, change)
    assert explained.importance is None
    assert explained.parts is not None
    assert (explained.parts.value, explained.parts.reason) == (None, "value_wanted")


def test_what_left_the_window_is_still_asked_about() -> None:
    (explained,) = explainer().explain(Session("u", "s", first=5, next=6, asked=(0,)), [exchange("I like tea")], {})
    assert explained.status is Status.ASKED


def test_without_a_model_what_was_asked_about_waits_for_one() -> None:
    """The settings lost their key after the exchange was asked about."""
    session = Session("u", "s", next=1, asked=(0,))
    (explained,) = explainer(estimator=always(9)).explain(session, [exchange("I like tea")], NOTHING)
    assert (explained.status, "the settings no longer name one" in explained.why) == (Status.ASKED, True)


def test_only_system_and_tool_messages_are_unspoken() -> None:
    explained = decided(explainer(), spoken(0, ("system", "You are kind"), ("tool", "{}")))
    assert told(explained) == (
        "unspoken",
        "Only system and tool messages: they are never promoted by themselves.",
        "Messages of users and assistants are scored.",
    )
    assert (explained.parts, explained.importance, explained.memory_id) == (None, None, None)


def test_a_closed_exchange_has_the_id_of_its_memory() -> None:
    assert decided(explainer(), exchange("请记住我的生日")).memory_id == memory_id("u", "s", ("u0", "a0"))


def open_one(*said: tuple[str, str], **memory: Any) -> Explanation:
    messages = spoken(3, *said).messages
    session = Session("u", "s", first=0, next=3, open=messages)
    (explained,) = explainer(estimator=always(5), **memory).explain(session, [session.open_exchange], NOTHING)
    return explained


@pytest.mark.parametrize(
    ("said", "closes"),
    [
        ([("user", "hm")], "the user's next message after an answer"),
        ([("user", "hm"), ("assistant", "yes?")], "the user's next message"),
        ([("user", "hm")] * 16, "the next message"),
    ],
)
def test_an_open_exchange_says_what_closes_it(said: list[tuple[str, str]], closes: str) -> None:
    explained = open_one(*said)
    assert explained.why.startswith(
        f"It closes with {closes}, after 2 min of silence, or with the session. As things"
    )
    assert (explained.status, explained.outlook, explained.memory_id) == (Status.OPEN, Status.DROPPED, None)


def test_an_open_exchange_says_what_would_become_of_it() -> None:
    explained = open_one(("user", "please remember the milk"))
    assert explained.why.endswith("As things stand it would be promoted: the user asked to remember it.")
    assert (explained.outlook, explained.importance) == (Status.PROMOTED, 100)


def test_an_open_exchange_may_be_unspoken_yet() -> None:
    explained = open_one(("system", "You are kind"))
    assert (explained.status, "Only system" in explained.why, explained.outlook) == (Status.OPEN, True, None)


def test_a_waiting_exchange_says_until_when_and_what_then() -> None:
    window = Window().hear(*talk(4), message(98, at=70), message(99, "assistant", at=75))
    first, *_ = explained_of(window)
    assert first.status is Status.WAITING
    assert first.waits == Waits(7, START + 75_000 + 1_800_000)
    assert first.why == (
        "It is scored when 7 more exchanges have closed, the session ends (30 min of silence end it), or it expires. "
        "As things stand it would be dropped: "
        "fullness 0.30 + emotion 0 + content 0 = 0.30 ≤ 0.50, and the judge adds at most 0.10."
    )
    assert (first.outlook, first.importance) == (Status.DROPPED, 0)


def test_a_waiting_exchange_whose_value_decides_will_be_asked_about() -> None:
    session = Session("u", "s", next=1, pending=(0,), exchanges=1)
    (explained,) = explainer().explain(session, [exchange("I like tea")], NOTHING)
    assert "As things stand it would be asked about: fullness 0.30" in explained.why
    assert (explained.outlook, explained.importance) == (Status.ASKED, None)


def test_what_a_model_said_before_is_known_before_it_is_asked() -> None:
    """In a replay the answers are in the shard already."""
    session = Session("u", "s", next=1, pending=(0,), exchanges=1)
    (explained,) = explainer().explain(session, [exchange("I like tea")], {0: 3})
    assert "m gave it 3 of 10" in explained.why
    assert explained.outlook is Status.PROMOTED


def test_questions_are_those_that_a_model_decides() -> None:
    said = [
        exchange("hm", seq=0),
        exchange("I like tea", seq=1),
        exchange("I like tea", seq=2, emotion="sad"),
        exchange("请记住我的生日", seq=3),
        spoken(4, ("system", "like")),
    ]
    assert [asked.seq for asked in explainer().questions(said)] == [1]
    assert [asked.seq for asked in explainer("llm").questions(said)] == [0, 1, 2]
    assert explainer(estimator=always(5)).questions(said) == []


def explained_of(window: Window, **memory: Any) -> list[Explanation]:
    session = window.session
    said = [window.stored[seq] for seq in session.window]
    if session.open:
        said.append(session.open_exchange)
    return explainer(estimator=always(5), **memory).explain(session, said, NOTHING)


@given(
    talked=st.integers(1, 12),
    threshold=st.integers(0, 8),
    capacity=st.integers(1, 8),
)
def test_the_turn_that_is_told_is_the_turn_that_comes(talked: int, threshold: int, capacity: int) -> None:
    """An exchange that waits for n more is scored when the n-th has closed, and not before."""
    memory = {"promote_threshold": threshold, "capacity": capacity}
    window = Window(**memory).hear(*talk(talked))
    waits = {e.exchange.seq: e.waits.exchanges for e in explained_of(window, **memory) if e.waits}
    assert set(waits) == set(window.session.pending)
    scored: dict[int, int] = {}
    for more in range(1, max(waits.values(), default=0) + 1):
        window.hear(*talk(1, start=talked + more - 1))
        for decision in window.decisions:
            scored.setdefault(decision.exchange.seq, more)
    assert {seq: scored[seq] for seq in waits} == waits


TEXTS = st.sampled_from(["hm", "I like tea", "请记住我的生日", "好"])
EMOTIONS = st.sampled_from([None, "sad", "calm"])
SAID = st.tuples(st.sampled_from(list(Role)), TEXTS, EMOTIONS, st.integers(-30, 200))


@given(st.lists(SAID, max_size=40), st.booleans(), st.sampled_from(["weighted", "llm", "all"]))
def test_what_is_explained_is_what_was_decided(
    said: list[tuple[Role, str, str | None, int]], ended: bool, policy: str
) -> None:
    """Worked out again from the window, each decision is the one that was made, late messages and all."""
    scoring = ScoringSettings.model_validate({"policy": policy})
    memory = {"promote_threshold": 3, "capacity": 6, "scoring": scoring}
    records: list[ConversationRecord] = []
    at = 0
    for i, (role, text, emotion, later) in enumerate(said):
        at = max(0, at + later)
        records.append(message(i, role.value, text, at=at, emotion=emotion))
    if ended:
        records.append(end(at))
    window = Window(**memory).hear(*records)
    explaining = Explainer(MemorySettings(**memory), always(5), FIVE)
    made = {decision.exchange.seq: decision for decision in window.decisions}
    held = [window.stored[seq] for seq in window.session.window]
    for explained in explaining.explain(window.session, held, NOTHING):
        decision = made.get(explained.exchange.seq)
        if decision is None:
            assert explained.status in (Status.WAITING, Status.UNSPOKEN)
        else:
            assert explained.status is (Status.PROMOTED if decision.kept else Status.DROPPED)
            assert (explained.importance, explained.parts) == (decision.importance, decision.parts)


@given(TEXTS, EMOTIONS, st.integers(0, 10), st.sampled_from(["weighted", "llm"]))
def test_what_would_change_it_does(text: str, emotion: str | None, value: int, policy: str) -> None:
    """The value that is named as the border is the border."""
    explaining, said = explainer(policy), exchange(text, emotion=emotion)
    explained = decided(explaining, said, value)
    if explained.change.startswith("A value of "):
        border = int(explained.change.split()[3])
        assert decided(explaining, said, border).status is not explained.status
        inside = border + (1 if explained.status is Status.PROMOTED else -1)
        assert decided(explaining, said, inside).status is explained.status


@pytest.mark.parametrize(("seconds", "text"), [(90, "90 s"), (120, "2 min"), (5_400, "90 min"), (86_400, "24 h")])
def test_spans_are_told_in_their_largest_whole_unit(seconds: int, text: str) -> None:
    assert lasting(seconds) == text
