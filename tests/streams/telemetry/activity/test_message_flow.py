"""What happens is noted while somebody looks, bounded, and gone when nobody does."""

from __future__ import annotations

from schemas.conversations import Role
from schemas.exchanges import Message
from streams.telemetry.activity.message_flow import MOST_A_BATCH, MOST_STEPS, SHOWN_CHARS, WATCHED_SECONDS, Flow
from tests.support.making import START, promotion


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def heard(flow: Flow, *texts: str, user: str = "u") -> None:
    said = [(n, Message(f"m{n}", Role.USER, text, START)) for n, text in enumerate(texts)]
    flow.heard({(user, "s"): said})


def test_it_is_open_for_some_time_after_a_look_and_keeps_nothing_then() -> None:
    clock = Clock()
    flow = Flow(clock)
    assert not flow.open
    flow.look()
    heard(flow, "hello")
    clock.seconds = WATCHED_SECONDS
    flow.tick()
    assert flow.open
    assert [step.text for step in flow.look()] == ["hello"]
    clock.seconds = 2 * WATCHED_SECONDS + 1
    flow.tick()
    assert not flow.open
    assert flow.look() == []


def test_of_a_large_batch_the_newest_are_kept_and_long_texts_are_cut() -> None:
    flow = Flow()
    flow.look()
    heard(flow, *(f"text {n}" for n in range(1_000)), "x" * 10_000)
    steps = flow.look()
    assert len(steps) == MOST_A_BATCH
    assert len(steps[-1].text) == SHOWN_CHARS + 1
    for _ in range(20):
        heard(flow, *map(str, range(100)))
    assert len(flow.look()) == MOST_STEPS


def test_what_a_user_has_forgotten_is_in_no_step() -> None:
    flow = Flow()
    flow.look()
    heard(flow, "mine")
    heard(flow, "another's", user="v")
    flow.written([promotion("mine", "m0")])
    flow.forget("u")
    assert [step.user_id for step in flow.look()] == ["v"]


def test_a_memory_is_numbered_after_what_it_came_from_and_carries_its_id() -> None:
    flow = Flow(now=lambda: START)
    flow.look()
    heard(flow, "hello")
    event = promotion("hello", "m0")
    flow.written([event])
    said, kept = flow.look()
    assert (said.kind, kept.kind) == ("message", "memory")
    assert said.number < kept.number
    assert (kept.memory_id, kept.message_ids, kept.importance) == (str(event.memory_id), ("m0",), 80)
