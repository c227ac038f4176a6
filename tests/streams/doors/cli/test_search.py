"""What commands tell people: which flag finds more, which line ingests, and what an id is."""

from __future__ import annotations

from io import StringIO

import click
import pytest
from rich.console import Console

from streams.doors.cli import show
from streams.doors.cli.ingest_line import ingest_line
from streams.doors.cli.memory_ids import MEMORY_ID
from streams.doors.cli.search import elsewhere, worth_showing

WHOLE = "4f1c09ab-e9a9-4cf6-ab16-f761f8c12dcd"


@pytest.mark.parametrize(
    ("better", "include_cold", "state", "told"),
    [
        ({"cold": 1}, False, None, "1 cold memory would have answered better: --include-cold shows it"),
        ({"cold": 2}, False, None, "2 cold memories would have answered better: --include-cold shows them"),
        (
            {"cold": 1, "deprecated": 3},
            False,
            None,
            "1 cold and 3 deprecated memories would have answered better: --include-all shows them",
        ),
        (
            {"deprecated": 1},
            True,
            None,
            "1 deprecated memory would have answered better: --include-all instead of --include-cold shows it",
        ),
        (
            {"cold": 1},
            False,
            "active",
            "1 cold memory would have answered better: --include-all instead of --state active shows it",
        ),
    ],
)
def test_the_flag_is_named_that_finds_what_is_better(
    better: dict[str, int], include_cold: bool, state: str | None, told: str
) -> None:
    assert elsewhere(better, include_cold, state) == told


def test_the_line_that_ingests_is_to_be_pasted(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the name in the PATH, else by the one that this command was started with."""
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/siltstone")
    assert ingest_line("127.0.0.1:9092") == "siltstone ingest chats.jsonl --bootstrap-servers 127.0.0.1:9092"
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr("sys.argv", ["my folder/siltstone", "dev"])
    assert ingest_line("h:1") == "'my folder/siltstone' ingest chats.jsonl --bootstrap-servers h:1"


@pytest.mark.parametrize(
    ("given", "taken"), [("4F1C09AB", "4f1c09ab"), (WHOLE, WHOLE), (WHOLE.replace("-", ""), WHOLE)]
)
def test_an_id_is_given_whole_or_by_its_beginning(given: str, taken: str) -> None:
    assert MEMORY_ID.convert(given, None, None) == taken


@pytest.mark.parametrize("given", ["4f1", "the key", "4f1c09ab*"])
def test_what_is_no_id_is_wrong_usage(given: str) -> None:
    with pytest.raises(click.UsageError, match="is neither a memory id"):
        MEMORY_ID.convert(given, None, None)


@pytest.mark.parametrize(("relevances", "shown"), [([], 0), ([0.05, 0.04], 1), ([0.9, 0.3, 0.29], 2)])
def test_likely_answers_are_shown_and_the_best_in_any_case(relevances: list[float], shown: int) -> None:
    hits = [{"relevance": relevance} for relevance in relevances]
    assert worth_showing(hits) == hits[:shown]


def test_until_when_a_memory_held_and_which_time_was_asked_for_is_shown() -> None:
    """The time is text of who asks: nothing in it is markup."""
    hit = {
        "id": WHOLE,
        "relevance": 0.9,
        "score": 80,
        "state": "active",
        "created_at": "2026-03-14T10:00:00Z",
        "valid_to": "2026-05-04T10:00:00Z",
        "memory": "My phone number is 555-1234",
        "explain": {"cosine": 0.5, "cosine_rank": 1, "bm25": 0.4, "bm25_rank": 1, "times": [{"text": "[red]in May"}]},
    }
    console = Console(width=100, record=True, file=StringIO())
    console.print(show.hits("Memories", [hit]))
    console.print(show.reasons([hit]))
    shown = console.export_text()
    assert "2026-03-14" in shown
    assert "until 2026-05-04" in shown
    assert "times in the question: [red]in May" in shown


@pytest.mark.parametrize(
    ("memory_id", "start", "told"),
    [
        (WHOLE, "2024-09-14T10:00:00.000Z", f"before [b]the wedding (2024-09-14, {WHOLE})"),
        (None, None, "before [b]the wedding (no memory tells of it)"),
    ],
)
def test_the_order_and_the_event_of_a_question_are_shown(memory_id: str | None, start: str | None, told: str) -> None:
    anchor = {"text": "[b]the wedding", "relation": "before", "memory_id": memory_id, "from": start, "to": start}
    explain = {"cosine": 0.5, "cosine_rank": 1, "bm25": 0.4, "bm25_rank": 1, "anchor": anchor}
    explain["order"] = {"text": "last bake", "first": "latest"}
    console = Console(width=200, record=True, file=StringIO())
    console.print(show.reasons([{"id": WHOLE, "explain": explain}]))
    assert f"times in the question: last bake: latest first, {told}" in " ".join(console.export_text().split())
