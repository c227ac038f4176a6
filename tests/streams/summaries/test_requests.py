"""The records that ask for summaries."""

from __future__ import annotations

import uuid
from datetime import date

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.conversations import Role
from schemas.exchanges import Message
from schemas.sessions import Session
from schemas.topic_specs import MAX_RECORD_BYTES, MAX_VALUE_BYTES
from streams.intake.rules.summary_triggers import SummaryWanted
from streams.summaries.requests import REQUEST_CHARS, request_of, summary_request
from tables.summaries.pending_summaries import Pending, PendingSummaries
from tests.support.examples import examples
from tests.support.making import START

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    role, at, name = draw(st.sampled_from(Role)), draw(st.integers(START, START + 20)), draw(st.none() | TEXT)
    return Message(draw(TEXT), role, draw(TEXT), at, None, name)


MESSAGES = st.lists(messages(), min_size=1, max_size=9)


@examples(200)
@given(MESSAGES, MESSAGES)
def test_a_record_is_the_json_of_its_fields_in_their_order(own: list[Message], others: list[Message]) -> None:
    """Byte for byte, messages by their time and else as they were given; written again it is the same."""
    session = Session("ann", "s", last_at=START, ended=False)
    wanted = SummaryWanted("count", date(2026, 1, 1), "m9", tuple(own))
    written = request_of(session, wanted, [("t", message) for message in others])
    said = [*(("s", message) for message in own), *(("t", message) for message in others)]
    assert written == orjson.dumps(
        {
            "run_id": orjson.loads(written)["run_id"],
            "user_id": "ann",
            "date": "2026-01-01",
            "reason": "count",
            "messages": [
                {
                    "user_id": "ann",
                    "session_id": session_id,
                    "message_id": message.message_id,
                    "role": message.role,
                    "content": message.content,
                    "timestamp": message.timestamp,
                    "name": message.name,
                }
                for session_id, message in sorted(said, key=lambda one: one[1].timestamp)
            ],
        }
    )
    assert written == request_of(session, wanted, [("t", message) for message in others])


def test_each_message_of_too_long_a_day_is_cut_to_its_share() -> None:
    said = [("s", Message(f"m{i}", Role.USER, "x" * 32_000, START + i, None, None)) for i in range(40)]
    request = summary_request(uuid.UUID(int=1), "u", date(2026, 1, 1), "manual", said)
    assert {len(message.content) for message in request.messages} == {REQUEST_CHARS // 40}


@pytest.mark.parametrize(
    ("count", "content", "session"),
    [
        (100, "\u0001" * 10_000, "s"),
        (20_000, "x" * 40, "\u0001" * 256),
        (60_000, "记" * 16, "会" * 200),
        (1, "", "s"),
    ],
    ids=["signs that JSON spells out", "long ids", "very many messages", "an ordinary one"],
)
def test_no_request_is_larger_than_a_broker_takes_and_the_newest_messages_are_in_it(
    count: int, content: str, session: str
) -> None:
    """Nor than a row that keeps it to be tried again may be."""
    said = [(session, Message(f"m{i}", Role.USER, content, START + i, None, None)) for i in range(count)]
    request = summary_request(uuid.UUID(int=1), "u", date(2026, 1, 1), "manual", said)
    assert len(request.model_dump_json().encode()) < MAX_VALUE_BYTES
    assert request.messages[-1].message_id == f"m{count - 1}"
    assert [one.timestamp for one in request.messages] == sorted(one.timestamp for one in request.messages)
    pending = PendingSummaries()
    pending.put(0, b"k", Pending(request, 1))
    ((_, _, row),) = pending.drain()
    assert row is not None
    assert len(row) < MAX_RECORD_BYTES
