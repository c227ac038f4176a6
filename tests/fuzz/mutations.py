"""Seeded hostility: what may become of a record on its way.

One source for all that is hostile here: property tests, the worker on the real broker, and the guided fuzzer draw
from the same mutations. `chance` decides all of it, so a seed repeats it.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from schemas.fields import MAX_CONTENT_BYTES
from schemas.ids import MAX_ID_CHARS
from schemas.times import EARLIEST_MS, LATEST_MS
from tests.crash.chatter import Said
from tests.fuzz.records import IDS, USERS, valid
from tests.support.making import START


class _Literal(str):
    """JSON that no writer of ours makes; it is put in as it is."""

    __slots__ = ()


SHAPES: tuple[Any, ...] = (
    None,
    True,
    False,
    [],
    {},
    [[]],
    [None] * 50,
    {"": None},
    {"a": {"b": 1}},
    {str(i): i for i in range(60)},
)
NUMBERS = (0, -1, 1, 0.1, -0.0, 5e-324, 1e308, 2**31, 2**53 + 1, 2**63, 2**64, -(10**25), float("nan"), float("-inf"))
WORDS = ("", " ", "\0", "a\0b", "\ud800", "\udc00x", "\u202e\ufeff", "\r\n", "🪨", "1", "-1", "nan", "1e5", "9" * 30)
LONG = ("x" * MAX_ID_CHARS, "x" * (MAX_ID_CHARS + 1), "x" * MAX_CONTENT_BYTES, "\0" * 9000, "记" * MAX_CONTENT_BYTES)
MOMENTS = (EARLIEST_MS - 1, EARLIEST_MS, LATEST_MS - 1, LATEST_MS, START // 1000, str(START), "2026-01-01", "24:00")
DATES = ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2099-12-31T23:59:59.9999999Z", "2026-W01-1")
KINDS = ("session_end", "silence", "promotion", "touch", "forget_user", "short_term", "user")
NAMES = (*USERS, *IDS, f"{{{IDS[0]}}}", f"urn:uuid:{IDS[1]}")
OURS = ({"transitions": "x", "tags": 7, "summary": [], "promotion": None, "speakers": {}}, {"x": "y" * 20_000})
DEEP = tuple(
    _Literal(one * depth + other * depth) for depth in (230, 250, 1030) for one, other in ("[]", ('{"a":[', "]}"))
)
LITERALS = ("1e400", "-0", "01", "+1", ".5", "NaN", "1" * 5000, '"\\ud800\\ud800"', '"\\x00"', "'a'", "[" * 3000, "")
NASTY: tuple[Any, ...] = (
    *(*SHAPES, *NUMBERS, *WORDS, *LONG, *MOMENTS, *DATES, *KINDS, *NAMES, *OURS, *DEEP),
    *map(_Literal, LITERALS),
)


def mutated(chance: random.Random, fields: dict[str, Any]) -> bytes:
    """The record with one or a few things in it that should not be there; now and then not even text."""
    record = deepcopy(fields)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        chance.choice(_CHANGES)(chance, record)
    value = written(record, ascii_only=chance.random() < 0.5)
    if chance.random() < 0.1:  # of equal keys the last one counts
        twice = json.dumps({chance.choice(list(fields)): chance.choice(WORDS)}).encode()
        value = value.replace(b"{", twice[:-1] + b", ", 1)
    return chance.choice(_DAMAGES)(chance, value) if chance.random() < 0.2 else value


def with_nasty_values(make: Callable[[], dict[str, Any]]) -> Iterator[bytes]:
    """Each of them in the place of each value, each time in a new record."""
    for place in range(len(_places(make()))):
        for nasty in NASTY:
            places = _places(record := make())
            if place < len(places):
                container, key = places[place]
                container[key] = nasty
                yield written(record, ascii_only=True)


def written(record: Any, *, ascii_only: bool) -> bytes:
    """JSON, in which literals stand as they are, and what is no Unicode is no UTF-8."""
    literals: list[_Literal] = []

    def plain(value: Any) -> Any:
        if isinstance(value, _Literal):
            literals.append(value)
            return f"literal {len(literals) - 1}."
        if isinstance(value, dict):
            return {key: plain(inner) for key, inner in value.items()}
        return [plain(inner) for inner in value] if isinstance(value, list) else value

    text = json.dumps(plain(record), ensure_ascii=ascii_only)
    for number, literal in enumerate(literals):
        text = text.replace(f'"literal {number}."', literal)
    return text.encode("utf-8", "surrogatepass")


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every container within, with each of its keys or numbers."""
    found: list[tuple[Any, Any]] = []
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        found += [(value, key), *_places(value[key])]
    return found


def _replace(chance: random.Random, record: Any) -> None:
    if places := _places(record):
        container, key = chance.choice(places)
        container[key] = deepcopy(chance.choice(NASTY))


def _remove(chance: random.Random, record: Any) -> None:
    if places := _places(record):
        container, key = chance.choice(places)
        del container[key]


def _wrap(chance: random.Random, record: Any) -> None:
    if places := _places(record):
        container, key = chance.choice(places)
        container[key] = chance.choice(([container[key]], {"a": container[key]}, [container[key]] * 20))


def _add(chance: random.Random, record: Any) -> None:
    name = chance.choice(("type", "metadata", "created_at", "run_id", "kind", "importance", "parts", "", "\0", "a.b"))
    record[name] = deepcopy(chance.choice(NASTY))


def _swap(chance: random.Random, record: Any) -> None:
    if places := _places(record):
        (one, here), (other, there) = chance.choice(places), chance.choice(places)
        one[here] = deepcopy(other[there])


_CHANGES: list[Callable[[random.Random, Any], None]] = [_replace, _replace, _replace, _remove, _wrap, _add, _swap]


def _flipped(chance: random.Random, value: bytes) -> bytes:
    place = chance.randrange(len(value))
    return value[:place] + bytes([value[place] ^ (1 << chance.randrange(8))]) + value[place + 1 :]


_DAMAGES: list[Callable[[random.Random, bytes], bytes]] = [
    _flipped,
    lambda chance, value: value[: chance.randrange(len(value))],
    lambda chance, value: value[chance.randrange(len(value)) :],
    lambda chance, value: value + chance.randbytes(3),
    lambda chance, value: value.replace(b'"', b"'"),
    lambda chance, value: b"\xef\xbb\xbf" + value,
    lambda chance, value: value.decode("utf-8", "replace").encode("utf-16"),
    lambda chance, value: gzip.compress(value),
    lambda chance, value: b"[" + value + b"]",
    lambda chance, value: value + b"\n" + value,
    lambda chance, value: b"\0" * 5 + value,  # as a schema registry's clients begin theirs
    lambda chance, value: b"",
]


def hostile(chance: random.Random) -> Said:
    """A record as nobody should send it: under its user's key, and now and then under another."""
    topic, fields = valid(chance)
    value = mutated(chance, fields) if chance.random() < 0.9 else chance.randbytes(chance.randrange(60))
    return Said(
        topic, fields["user_id"].encode() if chance.random() < 0.8 else chance.randbytes(chance.randrange(9)), value
    )
