"""What one summary reads of the requests that it answers."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from schemas.conversations import Role
from schemas.exchanges import Message
from schemas.summary_requests import Said
from streams.summaries.rules.reading import MOST_CHARS, MOST_MESSAGES, TOGETHER_MESSAGES, reading
from tests.support.examples import examples
from tests.support.making import START


def said(first: int, last: int, *, session: str = "s", content: str = "hello", role: Role = Role.USER) -> list[Said]:
    """Messages of these numbers, a second apart."""
    return [Said(session, Message(f"m{i}", role, content, START + i * 1000, None, None)) for i in range(first, last)]


def ids(requests: list[list[Said]]) -> list[str]:
    return [one.message.message_id for one in reading(requests).said]


def test_each_message_is_read_once_in_the_order_of_time() -> None:
    assert ids([said(3, 6), said(1, 4)]) == ["m1", "m2", "m3", "m4", "m5"]


def test_the_same_id_in_another_session_is_another_message() -> None:
    assert len(reading([said(0, 2), said(0, 2, session="t")]).said) == 4


def test_of_many_requests_the_newest_messages_are_read() -> None:
    """And it is known how many are not."""
    found = reading([said(20 * i, 20 * i + 20) for i in range(10)])
    assert len(found.said) == TOGETHER_MESSAGES
    assert found.said[-1].message.message_id == "m199"
    assert found.left_out == 200 - TOGETHER_MESSAGES


def test_a_long_request_is_read_as_far_as_alone() -> None:
    """With others it costs no more."""
    assert reading([said(0, 300)]).left_out == 0
    assert reading([said(0, 300), said(290, 310)]).left_out == 10


def test_no_summary_reads_more_than_the_most() -> None:
    assert len(reading([said(0, MOST_MESSAGES + 7)]).said) == MOST_MESSAGES
    long = "x" * (MOST_CHARS // 10)
    assert len(reading([said(0, 30, content=long)]).said) == 10
    assert len(reading([said(0, 30, content="x" * (MOST_CHARS + 1))]).said) == 1


def test_what_a_tool_says_is_not_missed() -> None:
    assert reading([said(0, 50, role=Role.TOOL), said(50, 130)]).left_out == 0


def test_of_nothing_nothing_is_read() -> None:
    assert reading([]) == ((), 0)
    assert reading([[], []]) == ((), 0)


@examples(100)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 30), st.sampled_from("st")), max_size=12), max_size=6), st.integers()
)
def test_the_order_of_requests_changes_nothing(numbers: list[list[tuple[int, str]]], seed: int) -> None:
    """So a summary is the same, however its requests came."""
    requests = [
        sorted(
            (one for i, session in request for one in said(i, i + 1, session=session)),
            key=lambda one: one.message.timestamp,
        )
        for request in numbers
    ]
    shuffled = random.Random(seed).sample(requests, len(requests))
    assert {one.message.message_id for one in reading(requests).said} == {
        one.message.message_id for one in reading(shuffled).said
    }
    assert [one.message.timestamp for one in reading(requests).said] == [
        one.message.timestamp for one in reading(shuffled).said
    ]
