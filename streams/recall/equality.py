"""When two JSON values are the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_PLAIN: Final = frozenset((str, int, float, type(None)))


def same(one: Any, other: Any) -> bool:
    """Whether they are equal as JSON's: `true` is not 1, within lists and objects neither; 1 is 1.0.

    >>> same(1, 1.0), same(True, 1), same([False], [0])
    (True, False, False)
    """
    if one.__class__ in _PLAIN and other.__class__ in _PLAIN:
        return one == other  # type: ignore[no-any-return] # most often, and for each memory that a filter is asked of
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    return bool(one == other)


def among(one: Any, several: list[Any]) -> bool:
    """Whether it is the same as one of several."""
    return one in several and any(same(one, other) for other in several)
