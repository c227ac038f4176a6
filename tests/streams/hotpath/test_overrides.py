"""The installed Faust is the one whose inside we override."""

from __future__ import annotations

import pytest

from schemas.errors import FaustChanged
from streams.hotpath import overrides


def test_fausts_sources_are_as_expected() -> None:
    """When this fails, read the changed methods, mend the overrides, and note the new fingerprints."""
    assert overrides.fingerprints() == overrides.EXPECTED_SOURCES


def test_another_faust_is_refused_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(overrides.EXPECTED_SOURCES, "Consumer.ack", "0" * 12)
    with pytest.raises(FaustChanged, match=r"Consumer\.ack"):
        overrides.check_faust()
