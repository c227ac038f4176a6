"""The installed Faust and aiokafka are those whose insides we override."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from schemas.errors import LibraryChanged
from streams.kafka.patches import library_sources
from streams.kafka.patches.library_sources import AIOKAFKA, FAUST, check_aiokafka, check_faust, fingerprint


@pytest.mark.parametrize("name", [*FAUST, *AIOKAFKA])
def test_a_source_is_as_expected(name: str) -> None:
    """If this fails: read the changed source, mend what overrides it, note the new hash (docs/upstream.md)."""
    assert fingerprint(name) == (FAUST | AIOKAFKA)[name]


@pytest.mark.parametrize(
    ("check", "expected", "name"),
    [(check_faust, "FAUST", "Consumer.ack"), (check_aiokafka, "AIOKAFKA", "Fetcher.close")],
)
def test_another_version_is_refused(
    monkeypatch: pytest.MonkeyPatch, check: Callable[[], None], expected: str, name: str
) -> None:
    monkeypatch.setitem(getattr(library_sources, expected), name, "0" * 12)
    with pytest.raises(LibraryChanged, match=rf"differs in {name}: install the version"):
        check()
