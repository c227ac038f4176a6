"""The installed Faust and aiokafka are those whose insides we override."""

from __future__ import annotations

from dataclasses import replace

import pytest

from schemas.errors import LibraryChanged
from streams.kafka.faust.faust_sources import FAUST
from streams.kafka.patches.aiokafka_sources import AIOKAFKA
from streams.kafka.patches.library_sources import LibrarySources


@pytest.mark.parametrize(
    ("sources", "name"), [(library, name) for library in (FAUST, AIOKAFKA) for name in library.expected]
)
def test_a_source_is_as_expected(sources: LibrarySources, name: str) -> None:
    """If this fails: read the changed source, mend what overrides it, note the new hash (docs/upstream.md)."""
    assert sources.fingerprint(name) == sources.expected[name]


@pytest.mark.parametrize(("sources", "name"), [(FAUST, "Consumer.ack"), (AIOKAFKA, "Fetcher.close")])
def test_another_version_is_refused(sources: LibrarySources, name: str) -> None:
    other = replace(sources, expected={**sources.expected, name: "0" * 12})
    with pytest.raises(LibraryChanged, match=rf"differs in {name}: install the version"):
        other.check()


def test_a_function_that_is_gone_is_a_difference() -> None:
    sources = replace(AIOKAFKA, expected={"Fetcher.fetch_tomorrow": "0" * 12})
    with pytest.raises(LibraryChanged, match=r"differs in Fetcher\.fetch_tomorrow"):
        sources.check()
