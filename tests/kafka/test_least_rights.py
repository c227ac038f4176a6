"""The least rights, as docs/run.md has them as commands, are enough."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from schemas.settings import KafkaSettings, Settings
from streams.kafka.access.rights import try_rights
from tests.kafka.secured import USER, Secured
from tests.kafka.test_missing_rights import say, worker
from tests.kafka.test_rights import create, fresh, rights_of
from tests.support.ports import free_port
from tests.support.waiting import until
from tests.support.workers import asked

DOCS = Path(__file__).parent.parent.parent / "docs" / "run.md"


def commands(kafka: KafkaSettings, safe: Secured, *, creating: bool) -> list[list[str]]:
    """Of the section, for this prefix, group and user; those that create are the second block."""
    section = DOCS.read_text(encoding="utf-8").partition("## The least rights\n")[2].partition("\n## ")[0]
    blocks = [block.partition("```")[0].strip().splitlines() for block in section.split("```console")[1:]]
    (given, *first), second = blocks
    add = shlex.split(given.removeprefix("add=").strip('"'))[1:]
    found = [[*add, *shlex.split(line.removeprefix("$add"))] for line in (*first, *(second if creating else ()))]
    where = {
        "kafka-1.example.com:9093": safe.brokers.inside,
        "User:siltstone": f"User:{USER}",
        "siltstone": kafka.group_id,
        "siltstone-": f"{kafka.group_id}-",
    }
    prefix = kafka.topic_prefix
    return [
        [
            where.get(word, prefix + word.removeprefix("siltstone.") if word.startswith("siltstone.") else word)
            for word in words
        ]
        for words in found
    ]


def run(safe: Secured, words: list[str]) -> None:
    """By the class behind `kafka-acls.sh`, as the administrator who needs no properties."""
    (node,) = safe.brokers.nodes
    at = words.index("--command-config")
    assert (
        node.run("kafka-run-class.sh", "org.apache.kafka.tools.AclCommand", *words[:at], *words[at + 2 :]).wait(60)
        == 0
    ), node.said()[-1000:]


@pytest.mark.parametrize("creating", [True, False])
async def test_with_the_rights_of_the_docs_a_worker_works(
    safe: Secured, settings: Settings, tmp_path: Path, creating: bool
) -> None:
    """It makes its topics and keeps what is said; where they are there, it needs no right to make any."""
    kafka, changelogs = fresh(safe)
    if not creating:
        await create(safe, kafka, changelogs)
    for words in commands(kafka, safe, creating=creating):
        run(safe, words)
    port, said = free_port(), tmp_path / "said"
    with worker(settings, kafka, port, said) as process:
        await until(lambda: bool(asked(port, "/readyz").get("ready")), alive=process)
        await say(safe, kafka)
        await until(lambda: asked(port, "/v1/memories?user_id=u&include_all=true").get("memories"), alive=process)
    assert "ERROR" not in said.read_text()
    tried = await try_rights(kafka, changelogs)
    assert (list(tried.missing), list(tried.absent)) == ([], [])


def test_the_table_names_each_right(safe: Secured) -> None:
    """What the code asks for, the table has: by the topic's name, or the changelogs' prefix."""
    kafka, changelogs = KafkaSettings(), frozenset({"siltstone-notes-changelog"})
    rows = [line for line in DOCS.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    for right in rights_of(kafka, changelogs):
        name = "siltstone-…-changelog" if right.name in changelogs else right.name
        assert any(right.operation in row and f"`{name}`" in row and right.resource in row for row in rows), right
