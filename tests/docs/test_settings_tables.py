"""docs/reference.md has every setting with its default."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, SecretStr

from schemas.settings import ProviderSettings, Settings
from tests.docs.pages import ROOT

REFERENCE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")


def defaults(section: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every key with its default; those of a provider with `<name>`."""
    for name, field in section.model_fields.items():
        kind = field.annotation
        if prefix + name == "llm":
            yield from defaults(type(Settings().llm), "llm.")
        elif prefix + name == "llm.providers":
            yield from defaults(ProviderSettings, "llm.providers.<name>.")
        elif isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from defaults(kind, f"{prefix}{name}.")
        else:
            yield prefix + name, field.default


def shown(default: Any) -> str:
    """As the table has it; of a list that is not empty, its end."""
    if isinstance(default, SecretStr):
        default = default.get_secret_value()
    if default is None or isinstance(default, bool):
        return {None: "null", True: "true", False: "false"}[default]
    if isinstance(default, tuple):
        return "…" if default else "[]"
    if isinstance(default, int | float):
        return f"{default:g}" if default < 1_000 else f"{default:.0f}"
    return f"`{default}`" if str(default) else "empty"


def test_every_setting_has_a_row_with_its_default() -> None:
    section = REFERENCE.partition("\n## Settings\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w.<>]+)` \| ([^|]*) \|", section, re.MULTILINE)
    assert len(rows) == len(dict(rows))
    expected = {key: shown(default) for key, default in defaults(Settings)}
    assert {key: "…" if given.endswith("…") else given for key, given in rows} == expected
