"""What follows a command to forget outside of the shards."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence

import pytest

from schemas.events import Edit, Forget, ForgetUser
from streams.forgetting.forgetters import Forgetters, Forgetting, Named, forgettings, may_forget
from tests.fuzz.way import Record
from tests.support.making import START

USER = ForgetUser(event_id=uuid.UUID(int=1), user_id="ann", timestamp=START)
ONE = Forget(event_id=uuid.UUID(int=2), user_id="ann", timestamp=START, memory_id=uuid.UUID(int=3))


class Kept:
    """Windows and summaries that note what they are told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def forget_user(self, partition: int, user_id: str, until: int) -> None:
        self.told.append(("windows", partition, user_id, until))

    def memories_of(self, partition: int, user_id: str) -> list[Named]:
        return [(user_id, uuid.UUID(int=n), START) for n in (3, 4)]

    def forget_memories(self, partition: int, user_id: str, ids: Collection[uuid.UUID]) -> None:
        self.told.append(("exchanges", partition, user_id, set(ids)))


class Files:
    def __init__(self, kept: Kept) -> None:
        self._told = kept.told

    async def forget_user(self, partition: int, user_id: str) -> None:
        self._told.append(("summaries", partition, user_id))

    async def forget_earlier(self, user_id: str, until: int) -> None:
        self._told.append(("earlier summaries", user_id, until))


async def test_a_users_windows_and_summaries_go_and_copies_are_told() -> None:
    kept = Kept()
    forgetters = Forgetters(kept, Files(kept), lambda: kept.told.append("copies"))
    await forgetters.follow(4, [Forgetting(USER, START - 9), Forgetting(ONE, START)])
    assert kept.told == ["copies", ("windows", 4, "ann", START), ("summaries", 4, "ann"), "copies"]


async def test_texts_in_the_workers_memory_are_told_of_each_user_once_and_again() -> None:
    users: list[str] = []
    forgetters = Forgetters(Kept(), told_of=users.append)
    await forgetters.follow(4, [Forgetting(USER, START), Forgetting(ONE, START)])
    await forgetters.follow_again(4, [Forgetting(ONE, START)])
    assert users == ["ann"] * 3


async def test_a_forgotten_memory_leaves_the_windows_when_the_shard_says_so() -> None:
    async def tombstones(partition: int, memories: Sequence[Named]) -> list[bool]:
        return [identity == ONE.memory_id for _, identity, _ in memories]

    kept = Kept()
    await Forgetters(kept, tombstones=tombstones).follow(4, [Forgetting(ONE, START)])
    assert kept.told == [("exchanges", 4, "ann", {ONE.memory_id})]


async def test_windows_forget_what_came_before_the_command_came() -> None:
    kept = Kept()
    await Forgetters(kept).follow(4, [Forgetting(USER, START + 9)])
    assert kept.told == [("windows", 4, "ann", START + 9)]


async def test_what_another_worker_has_followed_is_followed_in_the_files_alone() -> None:
    kept = Kept()
    forgetters = Forgetters(kept, Files(kept))
    await forgetters.follow_again(4, [Forgetting(USER, START), Forgetting(ONE, START)])
    assert kept.told == [("earlier summaries", "ann", START)]


async def test_what_another_worker_has_deleted_leaves_the_windows_files_here() -> None:
    """They are of before the partition went, or out of a checkpoint."""
    erased = list[tuple[int, str]]()
    forgetters = Forgetters(Kept(), erase=lambda *named: erased.append(named))
    await forgetters.follow_again(4, [Forgetting(USER, START), Forgetting(ONE, START)])
    assert erased == [(4, "ann"), (4, "ann")]


@pytest.mark.parametrize(
    ("value", "may"),
    [
        (b'{"type": "forget_user"}', True),
        (b'{"type": "\\u0066orget"}', True),
        (b'{"type": "edit"}', False),
        (None, False),
    ],
)
def test_what_can_be_no_command_to_forget_need_not_be_decoded(value: bytes | None, may: bool) -> None:
    assert may_forget(Record("long-term", 0, b"k", value)) is may


def test_commands_to_forget_are_found_with_when_they_came() -> None:
    """Not with the time that they say, which is their sender's."""
    record = Record("long-term", 0, b"ann", b"", timestamp=START + 1)
    edit = Edit(event_id=uuid.UUID(int=4), user_id="ann", timestamp=START, memory_id=uuid.UUID(int=3), text="tea")
    assert forgettings([(record, edit), (record, USER)], START + 2) == [Forgetting(USER, START + 1)]
