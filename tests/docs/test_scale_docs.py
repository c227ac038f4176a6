"""docs/scale.md does not lie: its tables are what its formulas give."""

from __future__ import annotations

import re
from typing import Any

import pytest

from benchmarks import scale
from benchmarks.scale_page import PAGE, computed, rewritten, tables_of
from schemas.lifecycle import half_life_of
from schemas.settings import CheckpointsSettings, CleanupSettings, KafkaSettings, LifecycleSettings, MemorySettings

TEXT = PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def known() -> dict[str, Any]:
    """What the page's program knows at its end, and as `printed` what it prints."""
    return computed(TEXT)


def test_the_tables_are_what_the_program_prints(known: dict[str, Any]) -> None:
    assert len(tables_of(known["printed"])) == 6
    assert rewritten(TEXT) == TEXT, "run: python benchmarks/scale_page.py"


def test_a_figure_that_has_changed_is_noticed() -> None:
    changed = TEXT.replace("EMBEDDED = 300", "EMBEDDED = 100")
    assert changed != TEXT
    assert rewritten(changed) != changed


def test_a_table_without_a_place_is_named() -> None:
    with pytest.raises(ValueError, match=r"no place for the table \| chat \| windows \|"):
        rewritten(TEXT.replace("| chat | windows |", "| kind | windows |"))


def test_the_program_computes_with_the_default_settings(known: dict[str, Any]) -> None:
    lifecycle, cleanup, memory = LifecycleSettings(), CleanupSettings(), MemorySettings()
    faded = half_life_of(80, lifecycle) * 1.415  # log2(80/30)
    assert known["KEPT_DAYS"] == pytest.approx(lifecycle.fresh_days + faded + cleanup.after_days, abs=0.1)
    assert known["ARCHIVED_DAYS"] == cleanup.retention_days
    assert known["SESSION_IDLE"] == memory.session_idle_seconds
    assert known["CHECKPOINT_SECONDS"] == CheckpointsSettings().seconds
    assert known["NOTICED"] == KafkaSettings().session_timeout_seconds
    assert pytest.approx(24e9 / 16) == known["RESIDENT"]
    assert memory.ttl_seconds == known["DAY"]


def test_a_constant_that_scale_measures_names_a_figure_of_its_json() -> None:
    measured = TEXT.split("# Measured by benchmarks/scale.py", 1)[1].split("\n\n", 1)[0].splitlines()[1:]
    names = [re.search(r": ([a-z_]+)(?: / [a-z_]+)?$", line) for line in measured]
    assert all(names), measured
    assert {found[1] for found in names if found} <= scale.FIGURES
