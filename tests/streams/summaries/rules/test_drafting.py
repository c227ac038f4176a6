"""What of a summary becomes a memory: with its messages, and the topic that has one of them."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from schemas.summaries import Decision, Preference, Summary, Topic
from streams.summaries.rules.drafting import Item, Order, Read, written
from tests.streams.summaries.rules.talking import LIMITS, turns
from tests.support.making import START


def test_an_item_has_the_topic_of_a_message_that_says_it() -> None:
    order = Order((), LIMITS, "en", ZoneInfo("UTC"), "manual", START)
    summary = Summary(
        topics=(Topic(title="A bike", sources=("m0", "m1")), Topic(title="Tea", sources=("m1", "m2"))),
        preferences=(Preference(text="Green tea", sources=("m2", "m9")),),
        decisions=(Decision(text="Buy the blue one", sources=("m1",)), Decision(text="Sleep", sources=("m7",))),
    )
    assert written(summary, Read(turns("I buy a bike", "A: Good"), 0), order).items == (
        Item("Green tea", ("m2", "m9"), "Tea"),
        Item("Buy the blue one", ("m1",), "A bike"),
        Item("Sleep", ("m7",), None),
    )
