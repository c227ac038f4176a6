"""Which questions corrections of an answer key change: on invented ones of both formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import orjson
import pytest

from benchmarks.evidence.corrections import Corrected, corrected, read_corrections

SAID = frozenset({"set-conv-30-D1:1", "set-conv-30-D1:2", "set-conv-30-D2:1", "m"})


def asked(number: int, question: str, *evidence: str, conversation: int = 30) -> dict[str, Any]:
    user = f"set-conv-{conversation}"
    return {
        "question_id": f"{user}-q{number:03d}",
        "user_id": user,
        "question": question,
        "category": "single_hop",
        "evidence_message_ids": [f"{user}-{one}" for one in evidence],
    }


QUESTIONS = [
    asked(0, "Where is the boat?", "D1:1"),
    asked(1, "Who has it?", "D1:1"),
    asked(2, "Who has it?", "D2:1"),
    asked(1, "Who has it?", "D9:9", conversation=26),
]


def by(tmp_path: Path, *rows: dict[str, Any]) -> Corrected:
    file = tmp_path / "key.json"
    file.write_bytes(orjson.dumps(list(rows)))
    return corrected(QUESTIONS, SAID, read_corrections([file]))


def test_a_question_is_named_by_its_id_or_by_its_user_and_text(tmp_path: Path) -> None:
    """A list within the evidence is a group of which any is enough; what no correction names stays."""
    found = by(
        tmp_path,
        {"question_id": "set-conv-30-q001", "evidence": [["set-conv-30-D1:1", "D1:2"], "m"], "answer": "Ann"},
        {"user_id": "set-conv-30", "question": "Where is the boat?", "drop": True},
    )
    first = found.questions[0]
    assert first["evidence_equivalents"] == [["set-conv-30-D1:1", "set-conv-30-D1:2"], ["m"]]
    assert first["evidence_message_ids"] == ["set-conv-30-D1:1", "set-conv-30-D1:2", "m"]
    assert found.questions[1:] == QUESTIONS[2:]
    assert (found.changed, found.dropped, found.matched) == (1, 1, 2)


def test_the_audit_of_locomo_names_the_conversation_and_the_question_by_number(tmp_path: Path) -> None:
    """Conversation 1 of the file is conv-30. Entries that correct only the answer change no evidence."""
    entry = {"question": "Who has it?", "correct_evidence": ["D1:2"], "error_type": "WRONG_CITATION"}
    found = by(
        tmp_path,
        {**entry, "question_id": "locomo_1_qa2"},
        {**entry, "question_id": "locomo_1_qa1", "correct_evidence": ["D1:1"]},
        {**entry, "question_id": "locomo_5_qa2"},
    )
    assert [one["evidence_message_ids"] for one in found.questions] == [
        ["set-conv-30-D1:1"],
        ["set-conv-30-D1:1"],
        ["set-conv-30-D1:2"],
        ["set-conv-26-D9:9"],
    ]
    assert (found.changed, found.dropped, found.matched) == (1, 0, 2)


def test_lines_are_read_like_a_list_and_several_files_one_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(
        b'{"question_id": "a", "drop": true}\n\n{"question_id": "b", "evidence": ["m"]}\n \n'
    )
    (tmp_path / "b.json").write_bytes(b' [{"question_id": "c", "drop": true}]')
    assert [one.name for one in read_corrections([tmp_path / "a.jsonl", tmp_path / "b.json"])] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"question_id": "set-conv-30-q000", "evidence": ["D7:7"]}, "names D7:7, which is no message"),
        (
            {"user_id": "set-conv-30", "question": "Who has it?", "drop": True},
            "is asked 2 times: name its question_id",
        ),
        ({"question_id": "locomo_1_qa0", "question": "Else?", "correct_evidence": ["D1:1"]}, "is another question"),
    ],
)
def test_a_correction_that_cannot_be_meant_is_an_error(tmp_path: Path, row: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        by(tmp_path, row)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"no json", "is no JSON list"),
        (b"[]", "has no corrections"),
        (b"\n \n", "has no corrections"),
        (b"[1]", "has no corrections"),
        (b'[{"evidence": ["m"]}]', "names a question_id"),
        (b'[{"question_id": "a"}]', "has evidence"),
        (b'[{"question_id": "a", "evidence": []}]', "has evidence"),
        (b'[{"question_id": "a", "evidence": [[]]}]', "has evidence"),
    ],
)
def test_a_file_of_another_form_is_one_line(tmp_path: Path, text: bytes, complaint: str) -> None:
    file = tmp_path / "key.json"
    file.write_bytes(text)
    with pytest.raises(click.ClickException, match=complaint):
        read_corrections([file])
