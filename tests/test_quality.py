"""What the benchmark of quality measures, and that it reads the published formats: on small files of their shape."""

from __future__ import annotations

import math
from pathlib import Path

import click
import orjson
import pytest

from benchmarks import quality
from benchmarks.evidence.measures import (
    fused,
    measured,
    ndcg,
    places_of,
    ranks_of,
    recall,
    recall_all,
    recall_any,
    units_of,
)
from benchmarks.evidence.sets import EvidenceSet, beam, line_files, loaded, longmemeval
from benchmarks.evidence.units import held, pieces_of
from tests.support.hits import hit


def test_measures_of_evidence_at_the_second_and_the_fifth_place() -> None:
    """By hand: half of it within three, all of it within five, the first at two."""
    ranks = [2.0, 5.0]
    assert [recall(ranks, k) for k in (1, 3, 5, 10)] == [0, 0.5, 1, 1]
    assert [recall_all(ranks, k) for k in (1, 3, 5, 10)] == [0, 0, 1, 1]
    best = 1 / math.log2(2) + 1 / math.log2(3)
    assert ndcg(ranks, 10) == pytest.approx((1 / math.log2(3) + 1 / math.log2(6)) / best)
    assert measured(ranks)["mrr"] == 0.5


def test_some_of_the_evidence_is_a_hit() -> None:
    """By hand, beside the share and all of it."""
    ranks = [2.0, 5.0, math.inf]
    assert [recall_any(ranks, k) for k in (1, 3, 5, 10)] == [0, 1, 1, 1]
    assert [recall(ranks, k) for k in (1, 3, 5, 10)] == pytest.approx([0, 1 / 3, 2 / 3, 2 / 3])
    assert [recall_all(ranks, k) for k in (1, 3, 5, 10)] == [0, 0, 0, 0]


def test_the_gain_of_the_first_five_leaves_out_the_sixth_place() -> None:
    assert ndcg([1, 6], 5) == pytest.approx(1 / (1 + 1 / math.log2(3)))
    assert ndcg([1, 6], 10) == pytest.approx((1 + 1 / math.log2(7)) / (1 + 1 / math.log2(3)))
    assert {"ndcg5", "ndcg10", "recall_any1", "recall_any10", "recall_all5", "r3"} < measured([1.0]).keys()


def test_what_is_never_found_gains_nothing() -> None:
    figures = measured([1.0, math.inf])
    assert (figures["r10"], figures["recall_all10"], figures["mrr"]) == (0.5, 0, 1)
    assert set(measured([math.inf]).values()) == {0}


def test_the_best_order_gains_all_also_of_more_evidence_than_places() -> None:
    assert ndcg([1, 2, 3], 10) == 1
    ranks = [float(rank) for rank in range(1, 15)]
    assert ndcg(ranks, 10) == ndcg(ranks, 5) == pytest.approx(1)
    assert (recall(ranks, 10), recall_any(ranks, 1), recall_all(ranks, 10)) == (10 / 14, 1, 0)


def test_evidence_in_one_memory_is_one_and_any_of_a_group_will_do() -> None:
    """Two messages of the first memory, and a group of which only the second message is in a memory."""
    places = places_of([["a", "b"], ["c"], ["d"]])
    units = units_of([frozenset("a"), frozenset("b"), frozenset("xd")], places)
    assert ranks_of(units, places) == [1, 3]


def test_what_another_ranking_lost_counts_one_by_one() -> None:
    units = units_of([frozenset("a"), frozenset("c"), frozenset("d")], places_of([["a", "b"], ["c"], ["d"]]))
    assert ranks_of(units, places_of([["d"]])) == [1, math.inf, math.inf]


def test_reciprocal_ranks_are_added() -> None:
    assert fused([1, 2], [3, 2]) == pytest.approx([1 / 61 + 1 / 63, 1 / 62 + 1 / 62])


def test_other_rankings_are_of_the_same_memories_and_of_equals_the_newest_is_first() -> None:
    hits = [hit("a", "s", 2, 1, 0), hit("b", "t", 2, 3, 1), hit("c", "s", 1, 2, 2)]
    found = {name: [one.message_ids[0] for one in order] for name, order in quality.orders(hits).items()}
    assert found == {"siltstone": list("abc"), "BM25": list("cba"), "dense": list("acb"), "RRF": list("cab")}
    assert held(hits, "session") == [["s"], ["t"]]


def test_adversarial_questions_are_counted_beside_the_others_and_not_among_them() -> None:
    row = {"mrr": 1.0}
    figures = quality.means({"one": {"simple": [row, {"mrr": 0.0}], "adversarial": [row], "abstention": [row]}})[
        "one"
    ]
    assert (figures["all"], figures["all_with_adversarial"]) == ({"n": 2, "mrr": 0.5}, {"n": 4, "mrr": 0.75})
    assert "all_with_adversarial" not in quality.means({"one": {"simple": [row]}})["one"]
    alone = quality.means({"one": {"adversarial": [row]}})["one"]
    assert alone["all"]["n"] == 0
    assert math.isnan(alone["all"]["mrr"])


def written(path: Path, value: object) -> Path:
    path.write_bytes(orjson.dumps(value))
    return path


def turn(role: str, content: str, **more: object) -> dict[str, object]:
    return {"role": role, "content": content, **more}


HAYSTACK = {
    "question_id": "q1",
    "question_type": "temporal-reasoning",
    "question": "When did I buy the boat?",
    "answer": "in May",
    "question_date": "2023/06/01 (Thu) 10:00",
    "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/10 (Wed) 23:07"],
    "haystack_session_ids": ["late", "early"],
    "haystack_sessions": [
        [turn("user", "The boat leaks.", has_answer=False)],
        [turn("user", "I bought a boat.", has_answer=True), turn("assistant", " "), turn("assistant", "Nice.")],
    ],
    "answer_session_ids": ["early"],
}


def test_longmemeval_is_a_user_for_each_question_whose_evidence_are_sessions(tmp_path: Path) -> None:
    """In the order of their dates; a blank turn is none, and what is to be abstained from is left out."""
    rows = [
        HAYSTACK,
        {**HAYSTACK, "question_id": "q2_abs"},
        {**HAYSTACK, "question_id": "q3", "answer_session_ids": []},
    ]
    found = longmemeval(written(tmp_path / "longmemeval_s.json", rows))
    assert (found.name, found.unit, len(found.digest)) == ("longmemeval_s", "session", 64)
    (question,) = found.questions
    assert (question.user_id, question.kind) == ("q1", "temporal-reasoning")
    assert pieces_of(question.evidence, found.unit, {}, found.sessions) == [frozenset({"early"})]
    assert [(m["session_id"], m["content"], m["timestamp"]) for m in found.messages] == [
        ("early", "I bought a boat.", "2023-05-10T23:07:00+00:00"),
        ("early", "Nice.", "2023-05-10T23:08:00+00:00"),
        ("late", "The boat leaks.", "2023-05-20T02:21:00+00:00"),
    ]


def test_evidence_of_longmemeval_is_the_marked_turns_or_any_turn_of_a_session_without_marks(tmp_path: Path) -> None:
    """A session that is not there is never found; what must not be answered is asked only if that is wanted."""
    rows = [{**HAYSTACK, "answer_session_ids": ["early", "late", "nowhere"]}, {**HAYSTACK, "question_id": "q2_abs"}]
    file = written(tmp_path / "longmemeval_s.json", rows)
    found = longmemeval(file)
    ((question,), sessions) = (found.questions, found.sessions)
    assert question.evidence == (frozenset({"q1/early/0"}), frozenset({"q1/late/0"}), frozenset({"nowhere"}))
    assert pieces_of(question.evidence, "session", {}, sessions) == [
        frozenset({one}) for one in ("early", "late", "nowhere")
    ]
    with_all = longmemeval(file, adversarial=True)
    assert [(one.user_id, one.kind) for one in with_all.questions] == [
        ("q1", "temporal-reasoning"),
        ("q2_abs", "abstention"),
    ]


def said(number: int, role: str, anchor: str | None = None) -> dict[str, object]:
    return {"id": number, "index": f"1,{number}", "role": role, "content": f"text {number}", "time_anchor": anchor}


BATCHES = [
    [said(0, "user", "March-15-2024"), said(1, "assistant")],
    [said(1, "user"), said(2, "assistant")],
]
PROBING = {
    "information_extraction": [{"question": "What is it?", "source_chat_ids": [1, 2, 99]}],
    "knowledge_update": [{"question": "And now?", "source_chat_ids": {"original": [0], "updated": [2]}}],
    "abstention": [{"question": "What colour?", "source_chat_ids": []}],
    "summarization": [{"question": "Sum it up"}],
}


def the_same(found: EvidenceSet, user: str) -> bool:
    by_kind = {one.kind: [sorted(group) for group in one.evidence] for one in found.questions}
    return by_kind == {
        "information_extraction": [[f"{user}/0/1", f"{user}/1/0"], [f"{user}/1/1"]],
        "knowledge_update": [[f"{user}/0/0"], [f"{user}/1/1"]],
    }


def test_beam_is_read_as_rows_as_published_and_as_a_folder_of_chats(tmp_path: Path) -> None:
    """An id that two messages have means either; questions without sources are left out."""
    row = {"conversation_id": "7", "chat": BATCHES, "probing_questions": repr(PROBING)}
    rows = beam(written(tmp_path / "100K.json", [row]))
    assert the_same(rows, "7")
    assert [m["session_id"] for m in rows.messages] == ["7/0", "7/0", "7/1", "7/1"]
    assert rows.messages[0]["timestamp"] == "2024-03-15T00:00:00+00:00"
    assert [m["timestamp"] for m in rows.messages] == sorted(m["timestamp"] for m in rows.messages)
    folder = tmp_path / "100K" / "7"
    (folder / "probing_questions").mkdir(parents=True)
    written(folder / "chat.json", [{"batch_number": n, "turns": [turns]} for n, turns in enumerate(BATCHES)])
    written(folder / "probing_questions" / "probing_questions.json", PROBING)
    assert the_same(beam(tmp_path / "100K"), "7")
    plans = [{"plan-1": [{"turns": [BATCHES[0]]}], "plan-2": None}, {"plan-2": [{"turns": [BATCHES[1]]}]}]
    assert the_same(beam(written(tmp_path / "10M.json", [{**row, "chat": plans}])), "7")


def test_a_file_of_another_form_is_one_line(tmp_path: Path) -> None:
    other = written(tmp_path / "other.json", [{"question": "?"}])
    for load in (longmemeval, beam):
        with pytest.raises(click.ClickException, match="is not in the expected format: KeyError"):
            loaded(load, other)
    with pytest.raises(click.ClickException, match="no question with evidence"):
        loaded(longmemeval, written(tmp_path / "none.json", [{**HAYSTACK, "answer_session_ids": []}]))


def test_a_limit_spreads_over_the_questions_and_keeps_what_their_users_said(tmp_path: Path) -> None:
    rows = [{**HAYSTACK, "question_id": f"q{n}"} for n in range(10)]
    found = longmemeval(written(tmp_path / "l.json", rows)).first(2)
    assert [one.user_id for one in found.questions] == ["q0", "q5"]
    assert {m["user_id"] for m in found.messages} == {"q0", "q5"}
    assert found.first(None) is found


def test_lines_have_their_speakers_names_and_no_adversarial_questions(tmp_path: Path) -> None:
    message = {"user_id": "u", "session_id": "s", "message_id": "m", "role": "user", "content": "Hi", "timestamp": 1}
    asked = {"user_id": "u", "question": "?", "category": "simple", "evidence_message_ids": ["m"]}
    questions = [asked, {**asked, "category": "adversarial"}, {**asked, "evidence_equivalents": [["m", "n"]]}]
    (tmp_path / "set.q.jsonl").write_bytes(b"\n".join(map(orjson.dumps, questions)))
    found = line_files(
        written(tmp_path / "set.m.jsonl", message),
        tmp_path / "set.q.jsonl",
        written(tmp_path / "set.u.jsonl", {"user_id": "u", "user_name": "Ann", "assistant_name": "Bo"}),
    )
    assert (found.name, found.messages[0]["name"]) == ("set", "Ann")
    assert [one.evidence for one in found.questions] == [(frozenset({"m"}),), (frozenset({"m", "n"}),)]


def test_adversarial_questions_are_asked_if_that_is_wanted_and_a_session_is_any_of_its_messages(
    tmp_path: Path,
) -> None:
    message = {"user_id": "u", "session_id": "s", "message_id": "m", "role": "user", "content": "Hi", "timestamp": 1}
    asked = {"user_id": "u", "question": "?", "category": "adversarial", "evidence_message_ids": ["m"]}
    abstention = {
        **asked,
        "category": "abstention",
        "evidence_message_ids": [],
        "evidence_session_ids": ["s", "gone"],
    }
    (tmp_path / "set.m.jsonl").write_bytes(b"\n".join(map(orjson.dumps, [message, {**message, "message_id": "n"}])))
    (tmp_path / "set.q.jsonl").write_bytes(b"\n".join(map(orjson.dumps, [asked, abstention])))
    files = tmp_path / "set.m.jsonl", tmp_path / "set.q.jsonl"
    assert line_files(*files).questions == []
    assert [one.evidence for one in line_files(*files, adversarial=True).questions] == [
        (frozenset({"m"}),),
        (frozenset({"m", "n"}),),
    ]
