"""Which exchanges are kept, and with what importance."""

from __future__ import annotations

import pytest

from schemas.exchanges import Exchange
from schemas.settings import MemorySettings, ScoringSettings
from streams.intake.rules.decision import Decision, Estimator, RatingNeeded
from streams.intake.rules.promotion import Promoter
from streams.intake.rules.scoring import Scorer
from streams.language.phrases import Phrases
from tests.support.making import exchange, spoken

MEMORY = MemorySettings()


class FixedEstimator:
    """Always answers the same, and counts how often it is asked."""

    def __init__(self, value: int) -> None:
        self.value, self.asked = value, 0

    def __call__(self, user: str, assistant: str) -> int:
        self.asked += 1
        return self.value


class Deciding:
    """With a estimator that answers at once there are decisions only.

    It has a promoter and is none: `make test-compiled` runs this with compiled rules, which nobody inherits from.
    """

    def __init__(self, memory: MemorySettings, estimator: Estimator) -> None:
        self._promoter = Promoter(memory, estimator)

    def rolls(self, exchanges_in_session: int) -> bool:
        return self._promoter.rolls(exchanges_in_session)

    def at_close(self, exchange: Exchange) -> Decision | None:
        verdict = self._promoter.at_close(exchange)
        assert not isinstance(verdict, RatingNeeded)
        return verdict

    def score(self, exchange: Exchange, exchanges_in_session: int, *, leaving: bool) -> Decision:
        verdict = self._promoter.score(exchange, exchanges_in_session, leaving=leaving)
        assert isinstance(verdict, Decision)
        return verdict


def test_full_window_and_keyword_are_exactly_the_border() -> None:
    """0.3 + 0.2 is 500 thousandths: the estimator decides, and 0 from it drops."""
    estimator = FixedEstimator(0)
    decision = Deciding(MEMORY, estimator).score(exchange("I like tea"), 10, leaving=False)
    assert (decision.parts.total, decision.kept, estimator.asked) == (500, False, 1)


@pytest.mark.parametrize(("value", "importance"), [(1, 71), (5, 75), (10, 80)])
def test_the_rating_tips_the_border(value: int, importance: int) -> None:
    """Importance is 70 + 30 × (total − 0.5)/0.3."""
    decision = Deciding(MEMORY, FixedEstimator(value)).score(exchange("I like tea"), 10, leaving=False)
    assert (decision.kept, decision.importance, decision.parts.reason) == (True, importance, "judged_important")


def test_a_strong_emotion_and_a_keyword_need_no_rating() -> None:
    estimator = FixedEstimator(0)
    decision = Deciding(MEMORY, estimator).score(exchange("我喜欢猫", emotion="悲伤"), 1, leaving=True)
    assert (decision.parts.total, decision.importance, estimator.asked) == (700, 90, 0)


def test_what_no_rating_can_save_is_dropped_unasked() -> None:
    """0.4 + 0.1 does not pass 0.5."""
    estimator = FixedEstimator(10)
    decision = Deciding(MEMORY, estimator).score(exchange("well", emotion="sad"), 6, leaving=False)
    assert (decision.parts.total, decision.kept, estimator.asked) == (380, False, 0)


@pytest.mark.parametrize(
    "text", ["请记住我的生日", "帮我记住", "记一下", "Please remember this", "Don’t forget the milk"]
)
def test_a_remember_phrase_forces(text: str) -> None:
    decision = Deciding(MEMORY, FixedEstimator(0)).at_close(exchange(text))
    assert decision is not None
    assert (decision.kept, decision.importance, decision.parts.reason) == (True, 100, "forced")


@pytest.mark.parametrize("pins", [True, False])
def test_what_was_asked_for_is_pinned_where_the_settings_say_so(pins: bool) -> None:
    memory = MEMORY.model_copy(update={"pin_requests": pins})
    decision = Deciding(memory, FixedEstimator(0)).at_close(exchange("请记住我的生日"))
    assert decision is not None
    assert decision.pinned == pins


@pytest.mark.parametrize("policy", ["weighted", "llm", "all"])
def test_what_nobody_asked_for_is_not_pinned(policy: str) -> None:
    memory = MEMORY.model_copy(update={"scoring": MEMORY.scoring.model_copy(update={"policy": policy})})
    decision = Deciding(memory, FixedEstimator(10)).score(exchange("I like tea", emotion="sad"), 11, leaving=True)
    assert (decision.kept, decision.pinned) == (True, False)


def test_the_assistants_remember_phrase_forces_nothing() -> None:
    assert Deciding(MEMORY, FixedEstimator(0)).at_close(exchange("hm", "please remember to drink")) is None


def test_policy_all_keeps_everything() -> None:
    """Importance is 70 + 3 × value."""
    memory = MEMORY.model_copy(update={"scoring": ScoringSettings(policy="all")})
    decision = Deciding(memory, FixedEstimator(4)).at_close(exchange("hm"))
    assert decision is not None
    assert (decision.kept, decision.importance) == (True, 82)


def test_rolling_begins_strictly_above_the_threshold() -> None:
    promoter = Deciding(MEMORY, FixedEstimator(0))
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


@pytest.mark.parametrize(
    ("exchanges", "text", "emotion", "total", "asked"),
    [
        (10, "hm", None, 300, 0),  # 0.3
        (6, "I like tea", None, 380, 0),
        (0, "I like tea", "sad", 400, 0),  # exactly 0.4: 0.1 more is not above 0.5
        (7, "I like tea", None, 410, 1),
        (9, "hm", "sad", 470, 1),
        (10, "hm", "sad", 500, 1),  # exactly 0.5: the estimator decides
        (4, "I like tea", "sad", 520, 0),
        (10, "I like tea", "sad", 700, 0),
    ],
)
def test_a_rating_is_asked_for_in_the_border_band_alone(
    exchanges: int, text: str, emotion: str | None, total: int, asked: int
) -> None:
    """Above 0.4 and up to 0.5: below it cannot save, above it cannot spoil."""
    estimator = FixedEstimator(0)
    decision = Deciding(MEMORY, estimator).score(exchange(text, emotion=emotion), exchanges, leaving=False)
    assert (estimator.asked, decision.parts.total, decision.kept) == (asked, total, total > 500)


@pytest.mark.parametrize(
    ("exchanges", "text", "emotion", "reason"),
    [
        (1, "hm", None, "low_score"),
        (10, "I like tea", "sad", "high_score"),
        (10, "I like tea", None, "judged_unimportant"),
    ],
)
def test_each_decision_says_why(exchanges: int, text: str, emotion: str | None, reason: str) -> None:
    decision = Deciding(MEMORY, FixedEstimator(0)).score(exchange(text, emotion=emotion), exchanges, leaving=False)
    assert decision.parts.reason == reason


def test_what_is_dropped_has_no_importance() -> None:
    assert Deciding(MEMORY, FixedEstimator(0)).score(exchange("hm"), 1, leaving=False).importance == 0


def test_the_rating_stands_in_the_parts() -> None:
    """0.41 + 0.1 × 9/10 is just not above 0.5; with 10 it is."""
    for value, total, kept in ((9, 500, False), (10, 510, True)):
        decision = Deciding(MEMORY, FixedEstimator(value)).score(exchange("I like tea"), 7, leaving=False)
        assert (decision.parts.value, decision.parts.total, decision.kept) == (value, total, kept)
        assert decision.parts.reason == ("judged_important" if kept else "judged_unimportant")


@pytest.mark.parametrize(
    ("threshold", "exchanges", "total", "importance"),
    [
        (10, 4, 520, 72),
        (10, 5, 550, 75),
        (10, 10, 700, 90),
        (60, 21, 505, 71),  # 70.5 is rounded up
        (300, 104, 504, 70),  # 70.4 is rounded down
    ],
)
def test_importance_grows_from_70_by_a_tenth_of_the_thousandths(
    threshold: int, exchanges: int, total: int, importance: int
) -> None:
    """70 + 30 × (total − 0.5)/0.3, rounded."""
    memory = MemorySettings(promote_threshold=threshold)
    decision = Deciding(memory, FixedEstimator(0)).score(
        exchange("I like tea", emotion="sad"), exchanges, leaving=False
    )
    assert (decision.parts.total, decision.importance) == (total, importance)


def test_the_estimator_hears_user_and_assistant_apart() -> None:
    class Listener:
        heard: tuple[str, str] | None = None

        def __call__(self, user: str, assistant: str) -> int:
            self.heard = user, assistant
            return 0

    estimator = Listener()
    said = spoken(0, ("user", "I like"), ("tool", "{}"), ("assistant", "yes"), ("user", "tea"))
    Deciding(MEMORY, estimator).score(said, 10, leaving=False)
    assert estimator.heard == ("I like\ntea", "yes")


def test_an_exchange_that_asks_for_nothing_waits_for_its_turn() -> None:
    estimator = FixedEstimator(10)
    assert Deciding(MEMORY, estimator).at_close(exchange("I like tea", emotion="sad")) is None
    assert estimator.asked == 0


def test_a_remember_phrase_comes_before_policy_all() -> None:
    memory = MEMORY.model_copy(update={"scoring": ScoringSettings(policy="all")})
    estimator = FixedEstimator(0)
    decision = Deciding(memory, estimator).at_close(exchange("请记住我的生日"))
    assert decision is not None
    assert (decision.importance, decision.parts.reason, estimator.asked) == (100, "forced", 0)


@pytest.mark.parametrize(("value", "importance"), [(0, 70), (10, 100)])
def test_policy_all_goes_from_70_to_100(value: int, importance: int) -> None:
    memory = MEMORY.model_copy(update={"scoring": ScoringSettings(policy="all")})
    decision = Deciding(memory, FixedEstimator(value)).at_close(exchange("hm"))
    assert decision is not None
    assert (decision.importance, decision.parts.value, decision.parts.reason) == (importance, value, "all")


LLM = MEMORY.model_copy(update={"scoring": ScoringSettings(policy="llm")})


@pytest.mark.parametrize("memory", [MEMORY, LLM], ids=["weighted", "llm"])
@pytest.mark.parametrize("text", ["I like tea", "hm"])
def test_a_decision_is_on_the_exchange_that_was_given(memory: MemorySettings, text: str) -> None:
    """Whether it was rated or not."""
    given = exchange(text)
    assert Deciding(memory, FixedEstimator(9)).score(given, 10, leaving=False).exchange is given


def test_where_no_weights_are_taken_the_total_is_the_whole() -> None:
    """1000 thousandths of what was asked for and of policy `all`; a hundred for each point with policy `llm`."""
    everything = MEMORY.model_copy(update={"scoring": ScoringSettings(policy="all")})
    asked = Deciding(MEMORY, FixedEstimator(0)).at_close(exchange("请记住我的生日"))
    kept = Deciding(everything, FixedEstimator(4)).at_close(exchange("hm"))
    assert asked is not None
    assert kept is not None
    rated = Deciding(LLM, FixedEstimator(4)).score(exchange("hm"), 11, leaving=False)
    assert (asked.parts.total, kept.parts.total, rated.parts.total) == (1000, 1000, 400)


@pytest.mark.parametrize(
    ("value", "kept", "importance"), [(6, False, 0), (7, True, 70), (9, True, 90), (10, True, 100)]
)
def test_policy_llm_keeps_from_seven_on(value: int, kept: bool, importance: int) -> None:
    decision = Deciding(LLM, FixedEstimator(value)).score(exchange("hm"), 11, leaving=False)
    assert (decision.kept, decision.importance, decision.parts.value) == (kept, importance, value)


def test_policy_llm_asks_for_every_exchange() -> None:
    estimator = FixedEstimator(3)
    for text in ("hm", "I like tea"):
        Deciding(LLM, estimator).score(exchange(text, emotion="sad"), 11, leaving=False)
    assert estimator.asked == 2


def test_without_an_estimator_at_hand_the_border_is_a_question() -> None:
    promoter = Promoter(MEMORY, None)
    asked = exchange("I like tea")
    assert promoter.score(asked, 11, leaving=False) == RatingNeeded(asked)


@pytest.mark.parametrize("text", ["hm", "I like tea"])
def test_without_an_estimator_at_hand_what_is_clear_is_decided(text: str) -> None:
    """0.5 + 0.2 is kept, and 0.3 dropped, whatever anybody would say."""
    verdict = Promoter(MEMORY, None).score(exchange(text, emotion="sad" if text != "hm" else None), 11, leaving=False)
    assert isinstance(verdict, Decision)
    assert verdict.kept == (text != "hm")


@pytest.mark.parametrize("value", range(11))
def test_an_answer_that_comes_later_decides_as_one_that_comes_at_once(value: int) -> None:
    for memory in (MEMORY, LLM):
        at_once = Deciding(memory, FixedEstimator(value)).score(exchange("I like tea"), 11, leaving=False)
        assert Promoter(memory, None).rated(exchange("I like tea"), value) == at_once


def test_what_nobody_could_tell_counts_as_nothing() -> None:
    decision = Promoter(MEMORY, None).rated(exchange("I like tea"), None)
    assert (decision.kept, decision.parts.value, decision.parts.reason) == (False, None, "unrated")
