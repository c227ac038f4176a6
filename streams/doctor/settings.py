"""The doctor's check of the settings: finds every mistake, and reads the correct sections for the other checks."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic_settings import SettingsConfigDict

from schemas.errors import SettingsError
from schemas.settings import CONFIG_VARIABLE, Settings
from streams.doctor.finding import Finding, failed, ok, warning

CHECK = "settings"
CORRECT = "correct it in config.yaml or in the environment"
PREFIX = "SILTSTONE_"
#: Environment variables of Siltstone that are not settings of a worker.
OTHER_VARIABLES = {CONFIG_VARIABLE, "SILTSTONE_URL", "SILTSTONE_TOKEN"}


class _Tolerant(Settings):
    """Settings that ignore unknown keys."""

    model_config = SettingsConfigDict(extra="ignore")


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """The settings as far as they can be read, and the mistakes in them (`problems`).

    `wrong` names the sections that have mistakes. In `settings`, these sections have their defaults. If the settings
    cannot be used at all, `settings` is None.
    """

    settings: Settings | None
    wrong: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()

    @classmethod
    def now(cls) -> ReadSettings:
        """Read the settings file and the environment in the same way as a worker."""
        try:
            return cls(Settings.load())
        except SettingsError as exc:
            problems = tuple(exc.problems)
        wrong = frozenset(_section(problem) for problem in problems) & Settings.model_fields.keys()
        try:
            return cls(_Tolerant.load(**{name: _default(name) for name in wrong}), wrong, problems)
        except SettingsError:
            return cls(None, wrong, problems)

    def findings(self) -> list[Finding]:
        """Return a finding for each mistake in the settings.

        There are also findings for settings without effect, and for environment variables that start with
        `SILTSTONE_`, but set nothing.
        """
        found = [failed(CHECK, problem, _advice(problem)) for problem in self.problems]
        if not found:
            named = os.environ.get(CONFIG_VARIABLE)
            file = named or ("config.yaml" if Path("config.yaml").exists() else None)
            source = (
                f"{file} and the environment" if file else "defaults and the environment: there is no config.yaml"
            )
            found.append(ok(CHECK, source))
        return [*found, *self._unused(), *(_unknown(name) for name in sorted(os.environ) if _sets_nothing(name))]

    def _unused(self) -> list[Finding]:
        """Return a finding for each setting without effect."""
        if self.settings is None or self.wrong & {"agents", "llm"}:
            return []
        of_all = self.settings.summaries().warnings if "memory" in self.wrong else self.settings.warnings()
        return [warning(CHECK, unused.what, unused.todo) for unused in of_all]


def _section(problem: str) -> str:
    return problem.split(":")[0].split(".")[0]


def _default(name: str) -> Any:
    """Return the default of a section or of a top-level setting.

    It is not validated, because validation may read the environment variables that are wrong.
    """
    annotation = Settings.model_fields[name].annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation.model_construct()
    return Settings.model_fields[name].default


def _advice(problem: str) -> str:
    key = problem.split(":")[0]
    if "extra inputs are not permitted" not in problem:
        return CORRECT
    section, dot, name = key.rpartition(".")
    meant = difflib.get_close_matches(name, _names(section), 1)
    if meant:
        return f"there is no such setting; did you mean {section}{dot}{meant[0]}?"
    return f"there is no such setting; known settings: {', '.join(_names(section))}"


def _unknown(variable: str) -> Finding:
    known = [PREFIX + key.upper().replace(".", "__") for key in _keys()]
    meant = difflib.get_close_matches(variable.upper(), known, 1)
    todo = f"write {meant[0]}" if meant else "remove it, or write SILTSTONE_SECTION__KEY, with two underscores"
    return warning(CHECK, f"{variable} in the environment sets nothing", todo)


def _sets_nothing(variable: str) -> bool:
    name = variable.upper()
    if not name.startswith(PREFIX) or name in OTHER_VARIABLES:
        return False
    return name.removeprefix(PREFIX).split("__")[0].lower() not in Settings.model_fields


def _keys(model: type[BaseModel] = Settings, above: str = "") -> Iterator[str]:
    """Yield the full name of every setting, such as `memory.scoring.model`."""
    for name, field in model.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from _keys(annotation, f"{above}{name}.")
        else:
            yield above + name


def _names(section: str) -> list[str]:
    """Return the names of the settings and sections directly below a section."""
    model: type[BaseModel] = Settings
    parts = iter(section.split(".") if section else ())
    for part in parts:
        annotation: Any = model.model_fields[part].annotation
        if get_origin(annotation) is dict:  # the next part is a name that users choose
            next(parts, None)
            annotation = get_args(annotation)[1]
        model = annotation
    return list(model.model_fields)
