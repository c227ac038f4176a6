"""docs/scale.md does not lie: its tables are what its formulas give."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from schemas.lifecycle import half_life_of
from schemas.settings import CleanupSettings, LifecycleSettings, MemorySettings

PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def reckoned() -> dict[str, object]:
    """What the page's program knows at its end, and as `printed` what it prints."""
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(program, names)
    return {**names, "printed": printed.getvalue()}


def test_the_tables_are_what_the_program_prints(reckoned: dict[str, object]) -> None:
    rows = str(reckoned["printed"]).splitlines()
    assert len(rows) == 20
    assert [row for row in rows if row not in PAGE.splitlines()] == []


def test_the_program_reckons_with_the_default_settings(reckoned: dict[str, object]) -> None:
    lifecycle, cleanup, memory = LifecycleSettings(), CleanupSettings(), MemorySettings()
    faded = half_life_of(80, lifecycle) * 1.415  # log2(80/30)
    kept = reckoned["KEPT_DAYS"]
    assert isinstance(kept, float)
    assert kept == pytest.approx(lifecycle.fresh_days + faded + cleanup.after_days, abs=0.1)
    assert reckoned["ARCHIVED_DAYS"] == cleanup.retention_days
    assert reckoned["SESSION_IDLE"] == memory.session_idle_seconds
    assert "| 24 h |" in PAGE
    assert memory.ttl_seconds == 24 * 3600
