"""The code that runs in the process of summaries."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.summaries.extraction import Failed, made
from streams.summaries.rules import kinds
from tests.streams.summaries.test_extraction_process import order


@pytest.fixture
def without_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kinds, "FILE", tmp_path / "gone.npz")
    kinds.loaded.cache_clear()


@pytest.mark.usefixtures("without_weights")
def test_a_missing_file_is_a_failure_of_each_summary_and_of_nothing_else() -> None:
    """The agent logs it and tries again; its process and the worker go on."""
    assert made([order("I like tea"), order("hm")], 20) == [Failed("FileNotFoundError")] * 2
