"""Corrections of an answer key: other evidence for a question, or a question to leave out.

A file is a JSON list, or has one JSON object a line, in one of two formats:

- ours: `question_id`, or `user_id` and `question`; then `evidence`, whose items are message ids, or lists of ids of
  which any is enough; or `"drop": true`
- the audit of LoCoMo (github.com/dial481/locomo-audit, `audit/errors_conv_*.json`): `question_id` is `locomo_7_qa78`,
  question 78 of the eighth conversation; `correct_evidence` has its turns (`D27:1`)

Other fields, such as corrected answers, are not used: the benchmark asks for evidence, not for answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
import orjson

Lines = list[dict[str, Any]]
#: The conversations of `locomo10.json` in their order: the audit numbers them.
CONVERSATIONS: Final = (26, 30, 41, 42, 43, 44, 47, 48, 49, 50)
AUDITED: Final = re.compile(r"locomo_(\d)_qa(\d+)")


@dataclass(frozen=True, slots=True)
class Correction:
    """The corrected evidence of a question, or none if the question is left out."""

    row: Mapping[str, Any]
    evidence: tuple[tuple[str, ...], ...] | None

    @property
    def name(self) -> str:
        return str(self.row.get("question_id") or f"{self.row['user_id']}: {self.row['question']}")

    def is_of(self, asked: Mapping[str, Any]) -> bool:
        if audited := AUDITED.fullmatch(str(self.row.get("question_id", ""))):
            conversation, number = CONVERSATIONS[int(audited[1])], int(audited[2])
            asked_number = re.search(r"q(\d+)$", str(asked.get("question_id", "")))
            of_it = re.search(rf"\bconv-{conversation}$", asked["user_id"]) is not None
            return of_it and asked_number is not None and int(asked_number[1]) == number
        if "question_id" in self.row:
            return bool(asked.get("question_id") == self.row["question_id"])
        return bool(asked["user_id"] == self.row["user_id"] and asked["question"] == self.row["question"])

    def applied(self, asked: Mapping[str, Any], said: frozenset[str]) -> dict[str, Any]:
        """The question with the corrected evidence. A turn of the audit is the message whose id ends with it."""
        assert self.evidence is not None
        if "question" in self.row and self.row["question"].strip() != asked["question"].strip():
            raise ValueError(f"{self.name} is another question in this set: {asked['question']}")
        groups = []
        for group in self.evidence:
            ids = [one if one in said else f"{asked['user_id']}-{one}" for one in group]
            if unknown := [one for one, message_id in zip(group, ids, strict=True) if message_id not in said]:
                raise ValueError(f"{self.name} names {unknown[0]}, which is no message of this set")
            groups.append(ids)
        flat = [one for ids in groups for one in ids]
        return {**asked, "evidence_message_ids": flat, "evidence_equivalents": groups}


@dataclass(frozen=True, slots=True)
class Corrected:
    """A set's corrected questions, and how many of them have other evidence or were left out."""

    questions: Lines
    changed: int
    dropped: int
    matched: int


def read_corrections(paths: Iterable[Path]) -> list[Correction]:
    return [_correction(path, row) for path in paths for row in _rows(path)]


def _rows(path: Path) -> Lines:
    try:
        whole = path.read_bytes()
        listed = whole.lstrip()[:1] == b"["
        lines = (line for line in whole.splitlines() if line.strip())
        rows: Lines = orjson.loads(whole) if listed else [orjson.loads(line) for line in lines]
    except ValueError as exc:
        raise click.ClickException(f"{path} is no JSON list and has no JSON lines: {exc}") from exc
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise click.ClickException(f"{path} has no corrections")
    return rows


def _correction(path: Path, row: dict[str, Any]) -> Correction:
    if "question_id" not in row and not {"user_id", "question"} <= row.keys():
        raise click.ClickException(f"{path}: a correction names a question_id, or a user_id and a question: {row}")
    if row.get("drop") is True:
        return Correction(row, None)
    evidence = row.get("evidence", row.get("correct_evidence"))
    groups = [[one] if isinstance(one, str) else one for one in evidence] if isinstance(evidence, list) else []
    if not groups or not all(isinstance(group, list) and group for group in groups):
        raise click.ClickException(f'{path}: a correction has evidence, or "drop": true: {row}')
    return Correction(row, tuple(map(tuple, groups)))


def corrected(questions: Lines, said: frozenset[str], corrections: Sequence[Correction]) -> Corrected:
    """Questions that no correction names stay as they are. Corrections of other questions are passed over."""
    rows: dict[int, Correction] = {}
    for one in corrections:
        found = [place for place, asked in enumerate(questions) if one.is_of(asked)]
        if len(found) > 1 and "question_id" not in one.row:
            raise ValueError(f"{one.name} is asked {len(found)} times: name its question_id")
        rows.update(dict.fromkeys(found, one))
    kept, changed = Lines(), 0
    for place, asked in enumerate(questions):
        if place not in rows:
            kept.append(asked)
        elif rows[place].evidence is not None:
            kept.append(rows[place].applied(asked, said))
            changed += set(kept[-1]["evidence_message_ids"]) != set(asked["evidence_message_ids"])
    return Corrected(kept, changed, len(questions) - len(kept), len(rows))
