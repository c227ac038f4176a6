"""The results (findings) of the doctor's checks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """The outcome of a check.

    `warning` means that a worker would run, but perhaps not as intended. `failed` means that a worker, or a part of
    it, would not work.
    """

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of a check: a line of text (`what`), and advice if the outcome is not ok (`todo`).

    The texts must not contain the text of another library's exception, which may quote a key, password or message.
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
