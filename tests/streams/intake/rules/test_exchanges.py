"""When an exchange is over."""

from __future__ import annotations

import pytest

from schemas.conversations import Role
from schemas.exchanges import Message
from schemas.settings import MemorySettings
from streams.intake.rules.exchanges import Limits, cut, silence_closes, starts_new
from tests.support.making import START

LIMITS = Limits.of(MemorySettings())


def said(*roles: str) -> list[Message]:
    """Messages a second apart."""
    return [Message(f"m{place}", Role(role), "hi", START + place * 1000) for place, role in enumerate(roles)]


def next_one(role: str) -> Message:
    return Message("next", Role(role), "hi", START)


def test_the_limits_are_the_settings_in_milliseconds() -> None:
    assert Limits(gap_ms=120_000, messages=16, idle_ms=1_800_000) == LIMITS


@pytest.mark.parametrize(
    ("before", "role", "new"),
    [
        ("", "user", False),
        ("", "assistant", False),
        ("user", "user", False),
        ("user", "assistant", False),
        ("user assistant", "assistant", False),
        ("user assistant", "user", True),
        ("assistant", "user", True),
        ("user assistant tool", "user", True),
        ("user tool system", "user", False),
        ("user assistant", "tool", False),
        ("user assistant", "system", False),
    ],
)
def test_a_user_who_speaks_after_the_assistant_starts_anew(before: str, role: str, new: bool) -> None:
    """Nobody else does; what tools and the system say in between changes nothing."""
    assert starts_new(said(*before.split()), next_one(role), LIMITS) is new


@pytest.mark.parametrize("role", list(Role))
def test_the_17th_message_starts_anew_whoever_says_it(role: Role) -> None:
    assert not starts_new(said(*["user"] * 15), next_one("user"), LIMITS)
    assert starts_new(said(*["user"] * 16), next_one(role.value), LIMITS)


def test_two_minutes_of_silence_close() -> None:
    """Counted from the latest message."""
    first, last = Message("a", Role.USER, "hi", START), Message("b", Role.USER, "hi", START + 5000)
    assert not silence_closes([first, last], START + 5000 + 119_999, LIMITS)
    assert silence_closes([first, last], START + 5000 + 120_000, LIMITS)


def test_silence_closes_nothing_where_nothing_is_open() -> None:
    assert not silence_closes([], START + 10**9, LIMITS)


def test_messages_that_are_cut_again_are_cut_at_silences_too() -> None:
    first, after = Message("a", Role.USER, "hi", START), Message("c", Role.USER, "hi", START + 240_000)
    between = Message("b", Role.USER, "hi", START + 119_999)
    assert cut([first, after], LIMITS) == [[first], [after]]
    assert cut([first, between, after], LIMITS) == [[first, between], [after]]


def test_messages_that_are_cut_again_are_cut_where_another_exchange_starts() -> None:
    messages = said("user", "assistant", "user")
    assert cut(messages, LIMITS) == [messages[:2], messages[2:]]


def test_no_messages_are_an_exchange_that_is_open_and_empty() -> None:
    assert cut([], LIMITS) == [[]]
