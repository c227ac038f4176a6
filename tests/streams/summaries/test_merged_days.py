"""The end of a day makes one summary of the day's summaries, which the agent keeps up to date."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from schemas.summaries import Insight, Summary, Todo
from streams.summaries import answering
from tables.summaries.day_files import merged_in
from tests.streams.summaries.test_agent import TODAY, TOMORROW, Model, Room, request, run_of

BEGIN = "<!-- siltstone: day -->"


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def merged(room: Room, user: str = "u") -> str | None:
    return merged_in(room.files.read(user, TODAY) or "")


async def test_the_end_of_a_day_merges_its_summaries(room: Room) -> None:
    """Not the count: the day goes on. What is said twice is in it once, with both messages."""
    await room.tell(request(1, word="tea"))
    await room.tell(request(2, word="tea"))
    assert merged(room) is None
    await room.tell(request(3, word="rice", reason="day_end"))
    text = merged(room) or ""
    assert [line for line in text.splitlines() if line.startswith("- **Preference**")] == [
        "- **Preference**: I like tea number 1 <!-- sources: m1 -->",
        "- **Preference**: I like tea number 2 <!-- sources: m2 -->",
        "- **Preference**: I like rice number 3 <!-- sources: m3 -->",
    ]
    assert text.splitlines()[0] == "# Daily summary 2026-01-01"
    assert text.endswith("Merged summaries: 3")
    assert room.outcomes == {"written": 3}


async def test_the_end_of_the_day_of_another_session_makes_it_again(room: Room) -> None:
    """So does a late message; the day is in the file once."""
    await room.tell(request(1))
    for number, reason in ((2, "day_end"), (3, "day_end"), (4, "count"), (5, "manual")):
        await room.tell(request(number, reason=reason))  # type: ignore[arg-type]
        assert (merged(room) or "").endswith(f"Merged summaries: {number}")
    assert (room.files.read("u", TODAY) or "").count(BEGIN) == 1


async def test_a_request_that_comes_again_changes_nothing(room: Room) -> None:
    end = request(2, reason="day_end")
    await room.tell(request(1), request(3))
    await room.tell(end)
    before = room.files.read("u", TODAY)
    await room.tell(end, end)
    assert room.files.read("u", TODAY) == before
    assert merged(room) is not None


async def test_a_person_who_asks_at_the_end_of_the_day_gets_both(room: Room) -> None:
    """Their requests are one summary, for the sake of the person; the day is over all the same."""
    await room.tell(request(1))
    await room.tell(request(2, reason="manual"), request(3, reason="day_end"))
    assert (merged(room) or "").endswith("Merged summaries: 2")


async def test_a_day_with_one_summary_and_a_day_of_small_talk_are_not_merged(room: Room) -> None:
    await room.tell(request(1, reason="day_end"))
    await room.tell(request(2, reason="day_end", day=TOMORROW, user="v"))
    assert (merged(room), merged(room, "v")) == (None, None)


async def test_days_and_users_have_their_own(room: Room) -> None:
    await room.tell(request(1), request(2, user="v"), request(3, day=TOMORROW))
    await room.tell(request(4, reason="day_end"))
    assert ("m1" in (merged(room) or ""), "m3" in (merged(room) or "")) == (True, False)
    assert merged(room, "v") is None
    assert BEGIN not in (room.files.read("u", TOMORROW) or "")


async def test_without_the_setting_nothing_is_merged(tmp_path: Path) -> None:
    room = Room(tmp_path, merge_at_day_end=False)
    await room.tell(request(1))
    await room.tell(request(2, reason="day_end"))
    assert (merged(room), room.summaries()) == (None, 2)


async def test_the_model_is_not_asked_again(tmp_path: Path) -> None:
    """The day is made of what it said."""
    model = Model()
    model.answers = [
        Summary(insights=(Insight(text="Tom is five", sources=("m1",)),)),
        Summary(
            insights=(Insight(text="tom is five.", sources=("m2",)),), todos=(Todo(text="Buy milk", sources=("m2",)),)
        ),
    ]
    room = Room(tmp_path, model)
    await room.tell(request(1))
    await room.tell(request(2, reason="day_end"))
    assert len(model.shown) == 2
    text = merged(room) or ""
    assert "- tom is five. <!-- sources: m1 m2 -->" in text
    assert "- [ ] Buy milk <!-- sources: m2 -->" in text


async def test_a_merged_day_is_not_remembered_again(tmp_path: Path) -> None:
    """Its preferences and decisions are those of its summaries."""
    room = Room(tmp_path, promote=True)
    await room.tell(request(1))
    await room.tell(request(2, reason="day_end"))
    assert merged(room) is not None
    assert len(room.outbox.sent) == len({event.event_id for event in room.outbox.sent}) == 2


async def test_of_a_forgotten_user_no_merged_day_is_left(room: Room) -> None:
    await room.tell(request(1))
    await room.tell(request(2, reason="day_end"))
    await room.agent.forget_user(0, "u")
    await room.tell(request(3, reason="day_end"))
    assert (merged(room), room.summaries()) == (None, 1)


async def test_a_fault_in_merging_costs_no_summary(
    room: Room, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told, without the words of the user; the part stays as it was."""
    await room.tell(request(1))
    await room.tell(request(2, reason="day_end"))
    before = merged(room)

    def broken(*_: object, **__: object) -> str:
        raise ValueError("I like tea")

    with monkeypatch.context() as patched:
        patched.setattr(answering, "day_merged", broken)
        await room.tell(late := request(3, reason="day_end"))
    assert run_of(late) in room.runs()
    assert merged(room) == before
    assert [one.message for one in caplog.records] == ["the summaries of a day cannot be merged: ValueError"]
    await room.tell(request(4))
    assert (merged(room) or "").endswith("Merged summaries: 4")


async def test_requests_that_failed_are_in_the_day(room: Room) -> None:
    """They are answered together with the end of the day, or after it."""
    room.extraction.poison = b"tea"
    await room.tell(request(1, run=1))
    assert list(room.kept()) == [str(uuid.UUID(int=1))]
    await room.tell(request(2, word="rice", reason="day_end", run=2))
    assert merged(room) is None
    room.extraction.poison = b"no such word"
    await room.tell(request(3, word="jazz", run=3))
    text = room.files.read("u", TODAY) or ""
    assert all(f"sources: m{number}" in text for number in (1, 2, 3))
