"""Findings: the results of a check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """`warning`: the worker works, but perhaps not as intended; `failed`: it would not work, or not fully."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line on one thing, and what to do about it if it is not ok.

    Neither contains a foreign exception's text: that may quote a key, a password or a message.
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
