"""What the intake's timer does is done while the tables are there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from schemas.settings import Settings
from streams.app import Siltstone


async def test_no_session_is_dropped_when_partitions_move_while_silences_are_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which ones have expired was known of the sessions before: another worker may have gone on with them since."""
    worker = Siltstone(Settings.load(data_dir=tmp_path))
    short_term, moved, dropped_since_then = worker.intake.short_term, list[bool](), list[bool]()

    async def takes_long(_memory: Any) -> None:
        moved.append(True)

    def forget_expired(_memory: Any) -> None:
        dropped_since_then.append(bool(moved))

    monkeypatch.setattr(short_term, "note_silence", takes_long)
    monkeypatch.setattr(short_term, "forget_expired", forget_expired)
    monkeypatch.setattr(worker.context.gate, "_lag", lambda: 0)
    await worker.intake._tick(dict)
    assert (moved, dropped_since_then) == ([True], [False])
