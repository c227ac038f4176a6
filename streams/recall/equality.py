"""Equality of JSON values for filters. Unlike in Python, `true` does not equal 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_PLAIN: Final = frozenset((str, int, float, type(None)))


def same(one: Any, other: Any) -> bool:
    """True if two JSON values are equal. 1 equals 1.0, but `true` does not equal 1, not even in lists and objects.

    >>> same(1, 1.0), same(True, 1), same([False], [0])
    (True, False, False)
    """
    if one.__class__ in _PLAIN and other.__class__ in _PLAIN:
        return one == other  # type: ignore[no-any-return] # the fast path: a filter tests every memory
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    return bool(one == other)


def among(one: Any, several: list[Any]) -> bool:
    """True if `one` equals one of the values in the list `several`, as `same` compares them."""
    return one in several and any(same(one, other) for other in several)
