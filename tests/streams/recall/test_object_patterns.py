"""Patterns that JSON objects match."""

from __future__ import annotations

from typing import Any

import pytest

from streams.recall.filtering import Filter
from streams.recall.object_patterns import matches_object

BOOK = {"kind": "book", "price": 12, "tags": ["a", {"b": 1}], "author": {"name": "Ann"}, "none": None}


@pytest.mark.parametrize(
    ("pattern", "holds"),
    [
        ({}, True),
        ({"kind": "book", "price": 12}, True),
        ({"kind": "book", "price": 13}, False),
        ({"price": {"$gte": 12, "$lt": 13}}, True),
        ({"price": {"$gt": 12}}, False),
        ({"price": {"$lte": "12"}}, True),
        ({"kind": {"$gt": 1}}, False),
        ({"none": {"$gt": 1}}, False),
        ({"kind": {"$ne": "film"}, "missing": {"$ne": 1}}, True),
        ({"missing": None, "none": {"$eq": None}}, True),
        ({"author": {"name": "Ann"}}, True),
        ({"author": {"name": {"$ne": "Ann"}}}, False),
        ({"kind": {"name": "Ann"}}, False),
        ({"tags": ["a", {"b": {"$gt": 0}}]}, True),
        ({"tags": ["a"]}, False),
    ],
)
def test_a_pattern_holds_or_does_not(pattern: dict[str, Any], holds: bool) -> None:
    assert matches_object(BOOK, pattern) is holds


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (3, "takes a JSON object"),
        ({"a": {"$near": 1}}, r"\$near: a comparison is one of \$eq"),
        ({"a": [{"$gt": 1, "b": 2}]}, "b: a comparison is one of"),
    ],
)
def test_what_is_no_pattern_is_refused(value: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Filter.of("metadata.value", "matches", value)
    with pytest.raises(ValueError, match="startswith takes a text"):
        Filter.of("kind", "startswith", 3)
