"""What is kept of a list is what the list would be."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.kafka.embedded.journal.listing import Listings
from streams.kafka.embedded.journal.objects import Objects
from tests.support.examples import examples

KEYS = st.sampled_from(["a/1", "a/2", "a/3", "b/1", "b/c/1", "a<&>/1"])


@given(st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=5), st.booleans()), max_size=20))
@examples(100)
def test_a_list_that_was_kept_is_as_one_that_is_made(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, bytes | None, bool]]
) -> None:
    """Whatever was put, put again, or deleted since it was asked for."""
    objects = Objects(tmp_path_factory.mktemp("journal") / "log")
    kept = Listings(objects)
    for key, value, asked in changes:
        objects.delete(key) if value is None else objects.put(key, value)
        for prefix in ("a/", "b/", "b/c/", "", "x/") if asked else ():
            listed = kept.within(prefix)
            assert listed == Listings(objects).within(prefix)
            assert len(re.findall(rb"<Key>", listed)) == len(list(objects.within(prefix)))
    objects.close()
