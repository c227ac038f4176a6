"""mem0's filter language, parsed into the user of the request and conditions on memories.

    {"user_id": "ann"}
    {"AND": [{"user_id": "ann"}, {"created_at": {"gte": "2026-01-01"}}, {"NOT": {"categories": {"in": ["spam"]}}}]}
    {"AND": [{"user_id": "ann"}, {"OR": [{"run_id": "r1"}, {"metadata": {"mood": "fine"}}]}]}

A request is about one user: `user_id` names one user, at the top level or within AND. An unsupported filter is
refused with one line of text; no filter is ignored. As in mem0, `ne` and `NOT` match memories without the field, and
`"*"` matches any value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from streams.doors.mem0.conditions import AnyOf, HasOne, Holds, Says, Without
from streams.recall.filtering import Condition, Filter, check_size

#: The maximum depth of nested filters. People do not write deeper ones.
DEEPEST: Final = 20
APP: Final = "app_id"
_FIELDS: Final = {
    "agent_id": "agent",
    "run_id": "session",
    "app_id": f"metadata.{APP}",
    "created_at": "created_at",
    "timestamp": "created_at",
    "id": "id",
    "memory_ids": "id",
}
_ALLOWED: Final = ("user_id", *_FIELDS, "categories", "keywords", "metadata")
_COMPARED: Final = ("eq", "ne", "gt", "gte", "lt", "lte", "in", "nin")


class Asked(NamedTuple):
    """The parsed filters: the user's id, or None if no filter names a user, and conditions, which must all match."""

    user_id: str | None
    conditions: tuple[Condition, ...]


def asked(filters: Mapping[str, Any] | None) -> Asked:
    """Parse mem0's filters. Raises `ValueError` if they are not valid. The text of the error says what is allowed."""
    try:
        check_size(filters or {})
    except ValueError as exc:
        raise ValueError(f"filters: {exc}") from exc
    users, conditions = set[str](), list[Condition]()
    for field, wanted in _beside(filters or {}):
        if field == "user_id":
            users.add(_one_user(wanted))
        else:
            conditions.append(_condition(field, wanted, 1))
    if len(users) > 1:
        raise ValueError("filters: user_id: a request is about one user: send one request for each")
    return Asked(users.pop() if users else None, tuple(conditions))


def _beside(filters: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the field and the value of each condition. All of these conditions must match.

    For AND, yield the conditions of its members instead.
    """
    for field, wanted in _object(filters, depth).items():
        if field == "AND":
            for one in _list(field, wanted):
                yield from _beside(one, depth + 1)
        else:
            yield field, wanted


def _object(given: Any, depth: int) -> Mapping[str, Any]:
    if depth > DEEPEST:
        raise ValueError(f"filters: nested more than {DEEPEST} deep")
    if not isinstance(given, Mapping):
        raise _no_condition(f'a condition is an object such as {{"run_id": "r1"}}, not {str(given)[:40]!r}')
    return given


def _list(field: str, given: Any) -> Sequence[Any]:
    """Return the list of conditions in `field`. NOT also accepts a single condition."""
    if field == "NOT" and isinstance(given, Mapping):
        return [given]
    if not isinstance(given, list):
        raise _no_condition(f"{field} takes a list of conditions")
    return given


def _no_condition(why: str) -> ValueError:
    """Return the error for a malformed filter.

    It is a `ValueError` even if a type is wrong, because callers handle all malformed filters in the same way.
    """
    return ValueError(f"filters: {why}")


def _one_user(wanted: Any) -> str:
    if isinstance(wanted, Mapping) and len(wanted) == 1:
        ((name, value),) = wanted.items()
        if name == "eq":
            wanted = value
        elif name == "in" and isinstance(value, list) and len(value) == 1:
            wanted = value[0]
    if not isinstance(wanted, str) or wanted in ("", "*"):
        raise ValueError("filters: user_id: a request is about one user, by name: send one request for each")
    return wanted


def _condition(field: str, wanted: Any, depth: int) -> Condition:
    match field:
        case "OR":
            return AnyOf(tuple(_together(one, depth + 1) for one in _list(field, wanted)))
        case "NOT":
            return Without(AnyOf(tuple(_together(one, depth + 1) for one in _list(field, wanted))))
        case "user_id":
            raise ValueError("filters: user_id: a request is about one user: give it once, beside AND, OR and NOT")
        case "metadata":
            return Holds(tuple(_of_field(f"metadata.{key}", one) for key, one in _object(wanted, depth).items()))
        case "categories":
            return Holds(tuple(_category(name, value) for name, value in _comparisons(wanted)))
        case "keywords":
            return Holds(tuple(_says("text", name, value) for name, value in _comparisons(wanted)))
        case "memory_ids" if isinstance(wanted, list):
            return _compared("id", "in", wanted)
        case _ if field in _FIELDS:
            return _of_field(_FIELDS[field], wanted)
    raise ValueError(f"filters: {field[:40]}: the field is one of {', '.join(_ALLOWED)}, or AND, OR, NOT")


def _together(given: Any, depth: int) -> Condition:
    """Return the condition for one member of OR or NOT. All fields of the member must match."""
    return Holds(tuple(_condition(field, wanted, depth) for field, wanted in _beside(given, depth)))


def _of_field(field: str, wanted: Any) -> Condition:
    return Holds(tuple(_compared(field, name, value) for name, value in _comparisons(wanted)))


def _comparisons(wanted: Any) -> list[tuple[str, Any]]:
    if not isinstance(wanted, Mapping):
        return [("ne", None) if wanted == "*" else ("eq", wanted)]
    if not wanted:
        raise ValueError("filters: an empty object has no condition")
    return list(wanted.items())


def _compared(field: str, name: str, value: Any) -> Condition:
    if name in ("contains", "icontains"):
        return _says(field, name, value)
    if name not in _COMPARED:
        raise ValueError(f"filters: {name[:40]}: the operator is one of {', '.join((*_COMPARED, *_TEXTS))}")
    if field == "created_at" and value is None:  # every memory has a creation time, so it is never null
        return Without(Holds(())) if name == "eq" else Holds(())
    try:
        return Filter.of(field, name, value)
    except ValueError as exc:
        raise ValueError(f"filters: {exc}") from exc


_TEXTS: Final = ("contains", "icontains")


def _says(field: str, name: str, value: Any) -> Condition:
    if name not in _TEXTS or not isinstance(value, str):
        raise ValueError(
            f"filters: {field.removeprefix('metadata.')}: {name[:40]}: use contains or icontains, with a text"
        )
    return Says(field, value, folded=name == "icontains")


def _category(name: str, value: Any) -> Condition:
    """Return a condition on the categories of a memory.

    `eq` and `in` match if one of the memory's categories equals a given category; `ne` and `nin` match otherwise.
    `contains` matches if one of the memory's categories contains the given text.
    """
    if value is None and name in ("eq", "ne"):
        return Filter.of("metadata.categories", name, None)
    if name in ("eq", "ne", "in", "nin"):
        wanted = value if isinstance(value, list) else [value]
        if not all(isinstance(one, str) for one in wanted):
            raise ValueError("filters: categories: must be texts")
        one = HasOne("metadata.categories", frozenset(wanted))
        return Without(one) if name in ("ne", "nin") else one
    return _says("metadata.categories", name, value)
