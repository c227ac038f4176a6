"""How well memories are found: the evidence of questions about real conversations, through the real worker.

    python benchmarks/retrieval.py MESSAGES.jsonl QUESTIONS.jsonl [--names USERS.jsonl]
        [--policy weighted] [--backend use] [--model NAME_OR_FOLDER] [--json]

Messages go through the broker, the windows and the shards, like any producer's, under the default policy: no question
finds an exchange that it does not promote, and windows are not searched. Under `--policy all` every exchange is a
memory, so that the search alone is measured. Each question is searched among its own user's memories, in every state.
R@k is the share of its evidence in the first k, MRR one over the rank of the first piece; questions without evidence
and adversarial ones are left out. If a question names `evidence_equivalents`, any message of a group is enough.

A line of `--names` gives the speakers of a user's conversations: `{"user_id", "user_name", "assistant_name"}`.
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split

import sys
from collections import defaultdict
from pathlib import Path
from typing import Final, get_args

import click
import numpy as np
import orjson
from rich.console import Console
from rich.table import Table

from schemas.settings import ScoringSettings
from streams.doors.cli.process import run

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.evidence.asking import answers, fed
from benchmarks.evidence.measures import KS, measured, places_of, ranks_of, units_of
from benchmarks.evidence.sets import EvidenceSet, line_files

SHIPPED: Final = ScoringSettings().policy
POLICIES: Final = get_args(ScoringSettings.model_fields["policy"].annotation)

Measures = list[list[float]]
File = click.Path(exists=True, dir_okay=False, path_type=Path)


async def results(asked: EvidenceSet, policy: str, backend: str, model: str, quiet: bool) -> dict[str, Measures]:
    """The measures of each question, by category: R@1, 3, 5, 10 and the reciprocal rank of the first piece."""
    found: dict[str, Measures] = defaultdict(list)
    async with fed(asked.messages, policy, backend, model) as worker:
        async for question, hits in answers(worker, asked.questions, quiet=quiet):
            places = places_of(hit.message_ids for hit in hits)
            figures = measured(ranks_of(units_of(question.evidence, places), places))
            found[question.kind].append([*(figures[f"r{k}"] for k in KS), figures["mrr"]])
    return found


@click.command()
@click.argument("messages", type=File)
@click.argument("questions", type=File)
@click.option("--names", type=File, help="Names of the speakers in each user's conversations.")
@click.option("--policy", type=click.Choice(POLICIES), default=SHIPPED, show_default=True, help="Promotion policy.")
@click.option("--backend", default="use", show_default=True, help="The embedding backend.")
@click.option("--model", default="", help="The embedding model: a name, or a folder.  [default: the backend's]")
@click.option("--json", "as_json", is_flag=True, help="End with one line holding a JSON object.")
def main(
    messages: Path, questions: Path, names: Path | None, policy: str, backend: str, model: str, as_json: bool
) -> None:
    """Measure how well the evidence of questions is found."""
    asked = line_files(messages, questions, names)
    if not asked.questions:
        raise click.ClickException(f"{questions} has no question with evidence")
    by_category = run(results(asked, policy, backend, model, quiet=as_json))
    whole = [row for rows in by_category.values() for row in rows]
    table = Table(
        *("category", "questions", *(f"R@{k}" for k in KS), "MRR"), title=f"{messages.name}, {policy}, {backend}"
    )
    for category, rows in [*sorted(by_category.items()), ("all", whole)]:
        table.add_row(category, f"{len(rows):,}", *(f"{value:.3f}" for value in np.mean(rows, axis=0)))
    Console().print(table)
    if as_json:
        figures = dict(zip(("r1", "r3", "r5", "r10", "mrr"), np.mean(whole, axis=0).round(4).tolist(), strict=True))
        click.echo(orjson.dumps({**figures, "n": len(whole), "policy": policy}).decode())


if __name__ == "__main__":
    main()
