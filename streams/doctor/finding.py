"""Findings: the results of a check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """`warning`: a worker would run, but perhaps not as intended. `failed`: it would not run, or not fully."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line about one checked thing (`what`), and advice if it is not ok (`todo`).

    Both must not contain the text of another library's exception, which may quote a key, a password or a message.
    """

    check: str
    outcome: Outcome
    what: str
    todo: str = ""


def ok(check: str, what: str) -> Finding:
    return Finding(check, Outcome.OK, what)


def warning(check: str, what: str, todo: str) -> Finding:
    return Finding(check, Outcome.WARNING, what, todo)


def failed(check: str, what: str, todo: str) -> Finding:
    return Finding(check, Outcome.FAILED, what, todo)
