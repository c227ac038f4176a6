"""The benchmark of quality as a command, on sets of a few messages."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from benchmarks import quality
from benchmarks.evidence.asking import answers, fed
from benchmarks.evidence.sets import line_files
from benchmarks.evidence.units import held
from tests.streams.models.reranking.cross_encoders import made
from tests.test_quality import HAYSTACK, written

pytestmark = pytest.mark.usefixtures("_like_a_command")


def test_nothing_to_ask_is_one_line() -> None:
    done = CliRunner().invoke(quality.main, [])
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert "nothing to ask: give --data" in done.stderr


def test_another_unit_is_refused_with_those_that_there_are() -> None:
    done = CliRunner().invoke(quality.main, ["--unit", "word"])
    assert done.exit_code == 2
    assert "'word' is not one of 'message', 'exchange', 'session'" in done.stderr


@pytest.mark.slow
def test_a_set_goes_through_the_worker_and_ends_with_one_line_of_figures(tmp_path: Path) -> None:
    file = written(tmp_path / "small.json", [HAYSTACK])
    picture = tmp_path / "q.png"
    done = CliRunner().invoke(quality.main, ["--longmemeval", str(file), "--picture", str(picture), "--json"])
    assert done.exit_code == 0, done.output
    told = orjson.loads(done.stdout.splitlines()[-1])
    one = told["sets"]["small"]
    assert "unit session" in done.stdout
    assert (one["unit"], one["by"]["siltstone, all"]["all"]["n"]) == ("session", 1)
    assert one["by"]["siltstone, all"]["all"]["recall_all3"] == 1
    assert 0 <= one["promoted_share"] <= 1
    steps = {f"siltstone without {step}" for step in quality.STEPS}
    assert set(one["by"]) == {"siltstone, all", "siltstone, weighted", "BM25", "dense", "RRF", *steps}
    assert picture.read_bytes().startswith(b"\x89PNG")


#: Two sessions of one user. The evidence of the first question is in one exchange, that of the second in one session.
SAID = [
    ("s1", "u1", "user", "I bought a red boat in May."),
    ("s1", "a1", "assistant", "A red boat, how nice!"),
    ("s1", "u2", "user", "My red boat leaks at the stern."),
    ("s1", "a2", "assistant", "Have the red boat repaired soon."),
    ("s2", "u3", "user", "I fry potatoes in butter."),
    ("s2", "a3", "assistant", "Potatoes fry well in butter."),
]
ASKED = [
    ("q1", "Which red boat did I buy in May?", "simple", ["u1", "a1"]),
    ("q2", "What about my red boat?", "simple", ["u1", "u2"]),
    ("q3", "How do I fry onions?", "adversarial", ["u3"]),
]


def small_set(folder: Path) -> Path:
    messages = [
        {
            "user_id": "u",
            "session_id": session,
            "message_id": one,
            "role": role,
            "content": said,
            "timestamp": f"2024-05-01T10:0{n}:00Z",
        }
        for n, (session, one, role, said) in enumerate(SAID)
    ]
    questions = [
        {"question_id": one, "user_id": "u", "question": text, "category": kind, "evidence_message_ids": evidence}
        for one, text, kind, evidence in ASKED
    ]
    for name, rows in (("messages", messages), ("questions", questions)):
        (folder / f"locomo_en.{name}.dev.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("unit", "all_of_it_first"), [("message", 0), ("exchange", 0.5), ("session", 1)])
def test_the_unit_is_said_and_counts(tmp_path: Path, unit: str, all_of_it_first: float) -> None:
    """Two messages are never in the first place; both of the first question's are in the first exchange."""
    options = ["--data", str(small_set(tmp_path)), "--unit", unit, "--adversarial", "--json"]
    done = CliRunner().invoke(quality.main, options)
    assert done.exit_code == 0, done.output
    one = orjson.loads(done.stdout.splitlines()[-1])["sets"]["locomo_en"]
    kinds = one["by"]["siltstone, all"]
    assert (one["unit"], f"unit {unit}" in done.stdout) == (unit, True)
    assert (kinds["all"]["n"], kinds["adversarial"]["n"], kinds["all_with_adversarial"]["n"]) == (2, 1, 3)
    assert kinds["all"]["recall_all1"] == all_of_it_first
    assert kinds["all"]["recall_any1"] == kinds["all"]["recall_all10"] == 1


@pytest.mark.slow
def test_a_corrected_key_is_asked_and_said(tmp_path: Path) -> None:
    key = tmp_path / "key.jsonl"
    key.write_bytes(b'{"question_id": "q1", "evidence": ["u2"]}\n{"question_id": "q2", "drop": true}\n')
    options = ["--data", str(small_set(tmp_path)), "--corrections", str(key), "--json"]
    done = CliRunner().invoke(quality.main, options)
    assert done.exit_code == 0, done.output
    one = orjson.loads(done.stdout.splitlines()[-1])["sets"]["locomo_en"]
    assert {name: one["corrections"][name] for name in ("changed", "dropped")} == {"changed": 1, "dropped": 1}
    assert one["by"]["siltstone, all"]["all"]["n"] == 1
    assert "1 changed, 1 dropped" in done.stdout


def test_corrections_of_other_questions_alone_are_one_line(tmp_path: Path) -> None:
    key = written(tmp_path / "key.json", [{"question_id": "other", "drop": True}])
    done = CliRunner().invoke(quality.main, ["--data", str(small_set(tmp_path)), "--corrections", str(key)])
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert "--corrections names no question" in done.stderr


@pytest.mark.slow
async def test_a_ranking_has_all_memories_so_that_no_session_is_missing(tmp_path: Path) -> None:
    """Also those that answer nothing of the question: twelve sessions, found beyond the tenth place."""
    folder = small_set(tmp_path)
    asked = line_files(folder / "locomo_en.messages.dev.jsonl", folder / "locomo_en.questions.dev.jsonl")
    things = [
        "boat",
        "piano",
        "garden",
        "violin",
        "tent",
        "kettle",
        "sofa",
        "drone",
        "camera",
        "ladder",
        "rug",
        "lamp",
    ]
    more = [
        {
            **asked.messages[0],
            "session_id": thing,
            "message_id": thing,
            "content": f"My {thing} is from an old friend.",
        }
        for thing in things
    ]
    async with fed(more, "all", "use", "") as worker:
        found = [hits async for _, hits in answers(worker, asked.questions, quiet=True)]
    assert [{session for (session,) in held(hits, "session")} for hits in found] == [{*things}, {*things}]


@pytest.mark.slow
def test_a_rerankers_order_is_a_row_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All others are as without it."""
    monkeypatch.setenv("SILTSTONE_RERANK__MODEL", "")  # so that it is again unset afterwards
    monkeypatch.setenv("SILTSTONE_RERANK__TIMEOUT_SECONDS", "8")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    file, model = written(tmp_path / "small.json", [HAYSTACK]), made(tmp_path / "model")
    done = CliRunner().invoke(quality.main, ["--longmemeval", str(file), "--rerank", str(model), "--json"])
    assert done.exit_code == 0, done.output
    by = orjson.loads(done.stdout.splitlines()[-1])["sets"]["small"]["by"]
    assert by["siltstone with rerank"]["all"]["n"] == 1
    assert by["siltstone, all"]["all"]["recall_all3"] == 1
