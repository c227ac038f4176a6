"""Settings: file, environment, and mistakes that a person understands."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.errors import SettingsError
from schemas.settings import Settings


def test_defaults_are_the_designs() -> None:
    settings = Settings.load()
    assert (settings.memory.promote_threshold, settings.memory.capacity) == (10, 50)
    assert (settings.lifecycle.active, settings.lifecycle.cold, settings.long_term.near_copy) == (70, 30, 0.95)


def test_the_environment_wins_over_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("config.yaml").write_text("memory: {promote_threshold: 20, capacity: 5}\n", encoding="utf-8")
    monkeypatch.setenv("SILTSTONE_MEMORY__PROMOTE_THRESHOLD", "30")
    assert (Settings.load().memory.promote_threshold, Settings.load().memory.capacity) == (30, 5)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("memory: {promote_threshold: many}", "memory.promote_threshold"),
        ("memory: {promote: 3}", "memory.promote"),
        ("lifecycle: {cold: 80}", "lifecycle"),
        ("http: {host: 0.0.0.0}", "http.host"),
        ("embedding: {backend: magic}", "embedding.backend"),
    ],
)
def test_a_mistake_is_one_line_with_its_path(text: str, path: str) -> None:
    Path("config.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        Settings.load()
    (problem,) = caught.value.problems
    assert problem.startswith(f"{path}:")
    assert "\n" not in problem


def test_a_password_shows_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SILTSTONE_KAFKA__SASL_PASSWORD", "hunter2")
    monkeypatch.setenv("SILTSTONE_KAFKA__SASL_USERNAME", "ann")
    monkeypatch.setenv("SILTSTONE_KAFKA__SECURITY_PROTOCOL", "SASL_SSL")
    assert "hunter2" not in repr(Settings.load())
