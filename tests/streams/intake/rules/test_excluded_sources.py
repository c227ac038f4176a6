"""Promotion that does not hear everybody: what excluded sources say is neither weighed nor kept."""

from __future__ import annotations

import pytest

from schemas.conversations import Role
from schemas.exchanges import Exchange, Message
from schemas.sessions import Session
from schemas.settings import MemorySettings, ScoringSettings
from schemas.sources import SOURCES
from streams.intake.agent import promotion
from streams.intake.rules.decision import Decision, RatingNeeded
from streams.intake.rules.excluded_sources import EXCLUDED, HeedingPromoter, promoter_of
from streams.intake.rules.explaining import Explainer, Status
from streams.intake.rules.promotion import Promoter
from tests.support.making import START

ALL = ScoringSettings(policy="all")
ASKED = Message("1", Role.USER, "What is it?", START + 1)
PERSONAL = Message("2", Role.ASSISTANT, "Remember that your name is Bob and you live in Oslo", START + 2)
TOOL = Message("3", Role.TOOL, "{}", START + 3, name="search")
CRAWLED = Message("4", Role.USER, "My name is Eve", START + 4, metadata={SOURCES: ["token:crawler"], "a": 1})


def heeding(*excluded: str, policy: ScoringSettings = ALL) -> Promoter:
    return promoter_of(
        MemorySettings(excluded_sources=excluded, scoring=policy), lambda user, assistant: len(assistant)
    )


def test_without_exclusions_it_is_the_usual_promoter() -> None:
    assert type(promoter_of(MemorySettings(), None)) is Promoter
    assert type(heeding("tool")) is HeedingPromoter


def test_the_words_of_who_is_excluded_are_not_weighed_and_not_in_the_memory() -> None:
    """The memory has the id that it has anyway."""
    said = Exchange(0, (ASKED, PERSONAL))
    decision = heeding("assistant").at_close(said)
    assert isinstance(decision, Decision)
    event = promotion(Session("u", "s"), decision)
    assert (event.text, decision.parts.value) == ("What is it?", 0)
    assert event.memory_id == said.memory_id("u", "s")


def test_a_phrase_of_who_is_excluded_forces_nothing() -> None:
    forcing = Exchange(
        0, (Message("1", Role.USER, "remember that I am Eve", START + 1, metadata={SOURCES: ["token:x"]}),)
    )
    usual = ScoringSettings()
    assert heeding("token:y", policy=usual).at_close(forcing) is not None
    assert heeding("token:x", policy=usual).at_close(forcing) is None
    verdict = heeding("token", policy=usual).score(forcing, 99, leaving=True)
    assert not isinstance(verdict, RatingNeeded)
    assert (verdict.kept, verdict.parts.reason) == (False, EXCLUDED)


def test_a_model_is_shown_what_is_heard() -> None:
    assert heeding("assistant").heard(Exchange(0, (ASKED, PERSONAL))).said() == ("What is it?", "")


def test_explain_says_that_it_is_because_of_who_said_it() -> None:
    settings = MemorySettings(excluded_sources=("token:crawler",), scoring=ALL)
    explainer = Explainer(settings, lambda user, assistant: 5, "the local estimator")
    (told,) = explainer.explain(Session("u", "s"), [Exchange(0, (CRAWLED,))], {})
    assert (told.status, "memory.excluded_sources" in told.why) == (Status.DROPPED, True)
    assert explainer.questions([Exchange(0, (CRAWLED,))]) == []


@pytest.mark.parametrize(
    ("messages", "sources"),
    [
        ((ASKED, PERSONAL), []),
        ((ASKED,), ["user"]),
        ((ASKED, TOOL, PERSONAL), ["assistant", "tool:search", "user"]),
        ((CRAWLED, PERSONAL), ["assistant", "token:crawler", "user"]),
        ((ASKED, PERSONAL, Message("5", Role.SYSTEM, "be kind", START + 5)), []),
    ],
)
def test_sources_are_recorded_where_they_are_not_the_usual_ones(
    messages: tuple[Message, ...], sources: list[str]
) -> None:
    exchange = Exchange(0, messages)
    assert exchange.unusual_sources() == sources
    assert SOURCES not in exchange.metadata()


@pytest.mark.parametrize("wrong", ["nobody", "system", "token:", "users"])
def test_a_source_that_there_is_not_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="excluded_sources"):
        MemorySettings(excluded_sources=(wrong,))
