"""Patterns for JSON objects, as document stores have them, for the filter operator `matches`.

    {"kind": "book", "price": {"$lt": 30, "$gte": 10}, "author": {"name": "Ann"}, "tags": ["a", "b"]}

Every key of the pattern must match. A plain value must be equal. An object is a pattern for the nested object. A list
must have the same length and match item by item. An object whose keys are in `COMPARISONS` is a comparison. Ordered
comparisons ($gt, $lt, …) work on numbers and on texts that are numbers. For all other values they are false.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from streams.recall.equality import same

Compare = Callable[[Any, Any], bool]


def _as_numbers(compare: Compare) -> Compare:
    def holds(found: Any, value: Any) -> bool:
        try:
            return not isinstance(found, bool) and compare(float(found), float(value))
        except (TypeError, ValueError, OverflowError):
            return False

    return holds


COMPARISONS: Final[dict[str, Compare]] = {
    "$eq": same,
    "$ne": lambda found, value: not same(found, value),
    "$gt": _as_numbers(operator.gt),
    "$gte": _as_numbers(operator.ge),
    "$lt": _as_numbers(operator.lt),
    "$lte": _as_numbers(operator.le),
}


def matches_object(found: Mapping[str, Any], pattern: Mapping[str, Any]) -> bool:
    """True if the object `found` matches all keys of the pattern. A key that `found` lacks counts as null."""
    return all(_matches(found.get(key), wanted) for key, wanted in pattern.items())


def check_pattern(pattern: Any) -> None:
    """Check a pattern. Raises `ValueError`, with the allowed values in its message, if the pattern is invalid."""
    if not isinstance(pattern, Mapping):
        raise ValueError("a filter: matches takes a JSON object")  # noqa: TRY004 - as for all filter errors
    for wanted in pattern.values():
        _check(wanted)


def _check(wanted: Any) -> None:
    if isinstance(wanted, list):
        for one in wanted:
            _check(one)
    elif isinstance(wanted, Mapping):
        if _compares(wanted):
            if unknown := wanted.keys() - COMPARISONS:
                raise ValueError(f"a filter: {min(unknown)}: a comparison is one of {', '.join(COMPARISONS)}")
        else:
            check_pattern(wanted)


def _matches(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if _compares(wanted):
            return all(COMPARISONS[name](found, value) for name, value in wanted.items())
        return isinstance(found, Mapping) and matches_object(found, wanted)
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(_matches, found, wanted))
    return same(found, wanted)


def _compares(wanted: Mapping[str, Any]) -> bool:
    return any(key.startswith("$") for key in wanted)
