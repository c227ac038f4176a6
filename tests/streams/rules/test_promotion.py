"""Which exchanges are kept, and with what importance."""

from __future__ import annotations

import pytest

from schemas.settings import MemorySettings, ScoringSettings
from streams.rules.promotion import Promoter
from streams.rules.scoring import Phrases, Scorer
from tests.making import exchange

MEMORY = MemorySettings()


class FixedJudge:
    """Always answers the same, and counts how often it is asked."""

    def __init__(self, value: int) -> None:
        self.value, self.asked = value, 0

    def __call__(self, user: str, assistant: str) -> int:
        self.asked += 1
        return self.value


def test_full_window_and_keyword_are_exactly_the_border() -> None:
    """0.3 + 0.2 is 500 thousandths: the judge decides, and 0 from it drops."""
    judge = FixedJudge(0)
    decision = Promoter(MEMORY, judge).score(exchange("I like tea"), 10, leaving=False)
    assert (decision.parts.total, decision.kept, judge.asked) == (500, False, 1)


@pytest.mark.parametrize(("value", "importance"), [(1, 71), (5, 75), (10, 80)])
def test_the_judge_tips_the_border(value: int, importance: int) -> None:
    """Importance is 70 + 30 × (total − 0.5)/0.3."""
    decision = Promoter(MEMORY, FixedJudge(value)).score(exchange("I like tea"), 10, leaving=False)
    assert (decision.kept, decision.importance, decision.parts.reason) == (True, importance, "judged_important")


def test_a_strong_emotion_and_a_keyword_need_no_judge() -> None:
    judge = FixedJudge(0)
    decision = Promoter(MEMORY, judge).score(exchange("我喜欢猫", emotion="悲伤"), 1, leaving=True)
    assert (decision.parts.total, decision.importance, judge.asked) == (700, 90, 0)


def test_what_the_judge_cannot_save_is_dropped_unasked() -> None:
    """0.4 + 0.1 does not pass 0.5."""
    judge = FixedJudge(10)
    decision = Promoter(MEMORY, judge).score(exchange("well", emotion="sad"), 6, leaving=False)
    assert (decision.parts.total, decision.kept, judge.asked) == (380, False, 0)


@pytest.mark.parametrize(
    "text", ["请记住我的生日", "帮我记住", "记一下", "Please remember this", "Don’t forget the milk"]
)
def test_a_remember_phrase_forces(text: str) -> None:
    decision = Promoter(MEMORY, FixedJudge(0)).at_close(exchange(text))
    assert decision is not None
    assert (decision.kept, decision.importance, decision.parts.reason) == (True, 100, "forced")


def test_the_assistants_remember_phrase_forces_nothing() -> None:
    assert Promoter(MEMORY, FixedJudge(0)).at_close(exchange("hm", "please remember to drink")) is None


def test_policy_all_keeps_everything() -> None:
    """Importance is 70 + 3 × value."""
    memory = MEMORY.model_copy(update={"scoring": ScoringSettings(policy="all")})
    decision = Promoter(memory, FixedJudge(4)).at_close(exchange("hm"))
    assert decision is not None
    assert (decision.kept, decision.importance) == (True, 82)


def test_rolling_begins_strictly_above_the_threshold() -> None:
    promoter = Promoter(MEMORY, FixedJudge(0))
    assert not promoter.rolls(10)
    assert promoter.rolls(11)


def test_leaving_counts_as_full() -> None:
    assert Scorer(MEMORY).local(exchange("hm"), 1, leaving=True).fullness == 300
    assert Scorer(MEMORY).local(exchange("hm"), 1, leaving=False).fullness == 30


def test_latin_keywords_are_whole_words() -> None:
    keywords = Phrases(["like", "叫"])
    assert not keywords.found_in("that is unlikely")
    assert keywords.found_in("She LIKED it")
    assert keywords.found_in("我叫小明")
