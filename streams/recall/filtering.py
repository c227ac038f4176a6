"""Filters over memories, written as `field:operator:value` in a query.

    importance:gte:80      created_at:lt:2026-02-01      kind:in:["exchange","remember"]
    metadata.mood:eq:fine  tags:contains:work            session:ne:s1               id:contains:"4f1c09ab"
    source:eq:tool         source:nin:["token","assistant"]

A memory may have several sources. A filter names sources or classes of sources. `eq`, `in` and `contains` are true if
the filter covers at least one of the memory's sources; `ne` and `nin` are true if it covers none.

    metadata.namespace:startswith:"a/b/"      metadata.value:matches:{"price":{"$lt":3}}

A request has at most `MOST_CONDITIONS` conditions and `MOST_VALUES` list values, including nested ones, because every
memory of the user is tested against all of them.

A value is parsed as JSON if possible, else it is text. A missing field equals only null, and `true` is not 1. A date
without a time is that day in UTC: `created_at:lte:2026-02-01` includes the whole day. In a JSON body, filters are
written as `{"importance": {"gte": 80}, "kind": "exchange"}`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final, NamedTuple, Protocol, Self

import orjson

from schemas.lifecycle import DAY_MS
from schemas.memories import MEMORY_COLUMNS, Memory
from schemas.sources import any_covered, sources_in
from schemas.times import parse_timestamp
from streams.recall.equality import among, same
from streams.recall.object_patterns import check_pattern, matches_object

#: The fields of a memory that filters can test, by their names in filters.
_ATTRIBUTES: Final = {column.filter: name for name, column in MEMORY_COLUMNS.items() if column.filter}
FIELDS: Final = (*_ATTRIBUTES, "source", "tags", "metadata.<key>")
MOST_CONDITIONS: Final = 64
MOST_VALUES: Final = 1_000
#: `_ONE_OF`: operators that are true if at least one of a memory's sources matches. `_OF_SOURCES`: all operators that
#: a filter on sources may use.
_ONE_OF: Final = ("eq", "in", "contains")
_OF_SOURCES: Final = (*_ONE_OF, "ne", "nin")
#: A filter may also have the name of the memory's field.
_SPELLINGS: Final = {attribute: field for field, attribute in _ATTRIBUTES.items() if attribute != field}


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Wrap a comparison so that it is False for values without an order: text with number, `true`, `false`, null."""

    def holds(found: Any, value: Any) -> bool:
        if found is None or isinstance(found, bool) or isinstance(found, str) != isinstance(value, str):
            return False
        return compare(found, value)

    return holds


OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "eq": same,
    "ne": lambda found, value: not same(found, value),
    "gt": _ordered(operator.gt),
    "gte": _ordered(operator.ge),
    "lt": _ordered(operator.lt),
    "lte": _ordered(operator.le),
    "in": among,
    "nin": lambda found, value: not among(found, value),
    "contains": lambda found, value: among(value, found) if isinstance(found, list) else value in found,
    "startswith": lambda found, value: isinstance(found, str) and found.startswith(value),
    "matches": lambda found, value: isinstance(found, dict) and matches_object(found, value),
}


class Span(NamedTuple):
    """A time in a filter, a day or one moment: from `start` (included) to `end` (excluded), in epoch ms."""

    start: int
    end: int

    def holds(self, moment: int) -> bool:
        return self.start <= moment < self.end


#: Operators that compare a memory's time with a span: `gt` means after the end of the span, `lt` before its start.
_IN_TIME: Final[dict[str, Callable[[int, Any], bool]]] = {
    "eq": lambda found, span: span.holds(found),
    "ne": lambda found, span: not span.holds(found),
    "gt": lambda found, span: found >= span.end,
    "gte": lambda found, span: found >= span.start,
    "lt": lambda found, span: found < span.start,
    "lte": lambda found, span: found < span.end,
    "in": lambda found, spans: any(span.holds(found) for span in spans),
    "nin": lambda found, spans: not any(span.holds(found) for span in spans),
}


class Condition(Protocol):
    """A test of one memory."""

    def matches(self, memory: Memory) -> bool:
        """True if the condition holds for `memory`."""


@dataclass(frozen=True, slots=True)
class HeldAt:
    """The condition that a memory held at a moment (epoch ms)."""

    moment: int

    def matches(self, memory: Memory) -> bool:
        return memory.held_at(self.moment)


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on one field.

    >>> Filter.parse("importance:gte:80")
    Filter(field='importance', operator='gte', value=80)
    """

    field: str
    operator: str
    value: Any

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a filter `field:operator:value`. Raises `ValueError` with a message that names the allowed values."""
        field, _, rest = text.partition(":")
        name, colon, raw = rest.partition(":")
        if not colon:
            raise ValueError(f"a filter is field:operator:value, with one of {', '.join(OPERATORS)}")
        return cls.of(field, name, _value(raw))

    @classmethod
    def of(cls, field: str, name: str, value: Any) -> Self:
        """Build a filter from its parts. Raises `ValueError` with a message that names the allowed values."""
        field = _SPELLINGS.get(field, field)
        if name not in OPERATORS:
            raise ValueError(f"a filter is field:operator:value, with one of {', '.join(OPERATORS)}")
        if field not in FIELDS[:-1] and not (field.startswith("metadata.") and field != "metadata."):
            raise ValueError(f"a filter: the field is one of {', '.join(FIELDS)}")
        if field == "created_at":
            return cls(field, name, _spans(name, value))
        if name in ("in", "nin") and not isinstance(value, list):
            raise ValueError(f"a filter: {name} takes a JSON list")
        if field == "source" and (name not in _OF_SOURCES or not all(isinstance(one, str) for one in _listed(value))):
            raise ValueError(f"a filter: source takes {', '.join(_OF_SOURCES)}, and texts such as tool or token:name")
        if name == "startswith" and not isinstance(value, str):
            raise ValueError("a filter: startswith takes a text")
        if name == "matches":
            check_pattern(value)
        if name in ("gt", "gte", "lt", "lte") and (
            isinstance(value, bool) or not isinstance(value, str | int | float)
        ):
            raise ValueError(f"a filter: {name} takes a number, a text or a time")
        return cls(field, name, value)

    @classmethod
    def all_of(cls, given: Sequence[str] | Mapping[str, Any]) -> tuple[Self, ...]:
        """Parse the filters of a query: a list of texts, or a JSON object with the conditions of each field.

        Raises `ValueError` with a message that names the allowed values.
        """
        if not isinstance(given, Mapping):
            _check_number(len(given))
            found = [cls.parse(text) for text in given]
            check_size({str(place): one.value for place, one in enumerate(found)})
            return tuple(found)
        check_size(given)
        found = []
        for field, wanted in given.items():
            conditions = wanted if isinstance(wanted, Mapping) else {"eq": wanted}
            found += [cls.of(field, name, value) for name, value in conditions.items()]
        return tuple(found)

    def matches(self, memory: Memory) -> bool:
        if self.field == "source":
            found_one = any_covered(_listed(self.value), sources_in(memory.meta, memory.kind))
            return found_one is (self.operator in _ONE_OF)
        if self.field == "created_at":
            return _IN_TIME[self.operator](memory.created_at, self.value)
        found = field_of(memory, self.field)
        if self.operator == "contains" and not isinstance(found, str | list):
            return False
        try:
            return OPERATORS[self.operator](found, self.value)
        except TypeError:  # `contains` cannot look for a number in a text
            return False


def matching(memories: Iterable[Memory], filters: Iterable[Condition]) -> list[Memory]:
    """Return the memories that match all filters, in their order."""
    conditions = list(filters)
    return [memory for memory in memories if all(condition.matches(memory) for condition in conditions)]


def check_size(given: Any) -> None:
    """Count the conditions and list values of JSON filters. Raises `ValueError` if there are too many.

    >>> check_size({"AND": [{"session": "s1"}] * 64})
    Traceback (most recent call last):
    ValueError: a filter: more than 64 conditions, or 1000 values in lists
    """
    conditions = values = 0
    waiting = [given]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            conditions += sum(not isinstance(within, Mapping) for within in one.values()) or 1
            waiting += one.values()
        elif isinstance(one, list):
            values += len(one)
            waiting += one
        _check_number(conditions, values)


def _check_number(conditions: int, values: int = 0) -> None:
    if conditions > MOST_CONDITIONS or values > MOST_VALUES:
        raise ValueError(f"a filter: more than {MOST_CONDITIONS} conditions, or {MOST_VALUES} values in lists")


def _value(raw: str) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return raw


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _spans(name: str, value: Any) -> Span | list[Span]:
    """Parse the value of a filter on `created_at`. Return a span, or a list of spans for `in` and `nin`.

    Raises `ValueError` with a message that names the allowed values.
    """
    if name not in _IN_TIME:
        raise ValueError(f"a filter: created_at takes {', '.join(_IN_TIME)}")
    if name not in ("in", "nin"):
        return _span(value)
    if not isinstance(value, list):
        raise ValueError(f"a filter: {name} takes a JSON list")  # noqa: TRY004 - as for all filter errors
    return [_span(one) for one in value]


def _span(value: Any) -> Span:
    try:
        if not isinstance(value, str):
            start = parse_timestamp(value)
            return Span(start, start + 1)
        moment = datetime.fromisoformat(value)
        start = parse_timestamp(moment.isoformat())
        return Span(start, start + (DAY_MS if _is_day(value) else 1))
    except ValueError as exc:
        raise ValueError("created_at: is not a time: give a day, ISO 8601 or epoch milliseconds") from exc


def _is_day(value: str) -> bool:
    """True if the text is a date without a time, which a filter takes as a whole day in UTC."""
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def field_of(memory: Memory, field: str) -> Any:
    """Return the memory's value that a filter on `field` tests; None if the memory does not have the field."""
    if field == "tags":
        return memory.meta.get("tags")
    if field.startswith("metadata."):
        return memory.meta.get(field.removeprefix("metadata."))
    if field == "id":
        return str(memory.id)
    return getattr(memory, _ATTRIBUTES[field])
