"""Which cosines of a model keep as many pairs of memories as those that were chosen for `use`.

    python benchmarks/likeness.py MESSAGES.jsonl [QUESTIONS.jsonl] [--names USERS.jsonl] [--backend e5] [--json]

Messages go through the broker, the windows and the shards of a real worker under policy `all`, where every exchange
is a memory; both models embed the texts of these memories. The pairs are those of one user's memories. Each least
cosine of `use` (`schemas/embedding_models.py`) keeps a share of them; the other model's cosine is the one that keeps
the same share of the pairs that do not belong together. Two kinds of pairs do: pieces of evidence of the same
question, and neighbours, which follow each other in a session. Of these a better model keeps more.

A line of `--names` gives the speakers of a user's conversations: `{"user_id", "user_name", "assistant_name"}`.
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple
from itertools import combinations, pairwise
from pathlib import Path
from typing import Final, NamedTuple

import click
import numpy as np
import numpy.typing as npt
import orjson
from rich.console import Console
from rich.table import Table

from schemas.embedding_models import USE
from schemas.memories import Memory
from schemas.settings import EmbeddingSettings
from streams.app import Siltstone
from streams.doors.cli.process import run
from streams.models.embedding.embedders import UseEmbedder, load_embedder
from streams.models.embedding.embedding import EMBEDDED_CHARS

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.evidence.asking import fed
from benchmarks.evidence.sets import Lines, Question, lines, named, questions_of

#: The least cosines of `use` that are asked about.
OF_USE: Final = tuple(sorted({*astuple(USE.latin)}))
File = click.Path(exists=True, dir_okay=False, path_type=Path)
Bools = npt.NDArray[np.bool_]
Cosines = npt.NDArray[np.float32]


class Pairs(NamedTuple):
    """The pairs of memories, each of one user: their cosine by each model, and whether they belong together."""

    use: Cosines
    other: Cosines
    evidence: Bools
    neighbours: Bools

    @property
    def apart(self) -> Bools:
        return ~(self.evidence | self.neighbours)


async def memories_of(messages: Lines) -> dict[str, list[Memory]]:
    """Each user's memories, in the order of the messages."""
    async with fed(messages, "all", "use", "") as worker:
        return {user: await _of(worker, user) for user in dict.fromkeys(one["user_id"] for one in messages)}


async def _of(worker: Siltstone, user: str) -> list[Memory]:
    found = await worker.service.users.ask(user, lambda shard: shard.memories_of(user))
    return sorted(found, key=lambda memory: (memory.created_at, memory.seq))


def pairs_of(memories: Mapping[str, Sequence[Memory]], questions: Iterable[Question], backend: str) -> Pairs:
    """All pairs of each user's memories, with both models' cosines."""
    asked = defaultdict[str, list[Question]](list)
    for question in questions:
        asked[question.user_id].append(question)
    models = UseEmbedder(), load_embedder(EmbeddingSettings.model_validate({"backend": backend}))
    parts = defaultdict[str, list[npt.NDArray[np.generic]]](list)
    for user, of_user in memories.items():
        upper = np.triu_indices(len(of_user), 1)
        texts = [memory.text[:EMBEDDED_CHARS] for memory in of_user]
        for name, model in zip(("use", "other"), models, strict=True):
            vectors = model.embed(texts, "document")
            parts[name].append((vectors @ vectors.T)[upper])
        parts["evidence"].append(_marked(len(of_user), same_evidence(of_user, asked[user]))[upper])
        parts["neighbours"].append(_marked(len(of_user), neighbours(of_user))[upper])
    return Pairs(**{name: np.concatenate(part) for name, part in parts.items()})


def same_evidence(memories: Sequence[Memory], questions: Iterable[Question]) -> Iterator[tuple[int, int]]:
    """The places of two memories that hold different pieces of evidence of one question."""
    place = {message: row for row, memory in enumerate(memories) for message in memory.message_ids}
    for question in questions:
        pieces = ({place[one] for one in group if one in place} for group in question.evidence)
        # Any message of a group is enough, so a group that lies in several memories says nothing about these.
        yield from combinations(sorted({rows.pop() for rows in pieces if len(rows) == 1}), 2)


def neighbours(memories: Sequence[Memory]) -> Iterator[tuple[int, int]]:
    """The places of memories that follow each other in a session."""
    sessions = defaultdict[str | None, list[int]](list)
    for row, memory in enumerate(memories):
        sessions[memory.session_id].append(row)
    for rows in sessions.values():
        yield from pairwise(rows)


def _marked(n: int, places: Iterable[tuple[int, int]]) -> Bools:
    marks = np.zeros((n, n), bool)
    for one, other in places:
        marks[one, other] = True
    return marks


def equal_share(least: float, use: Cosines, other: Cosines) -> float:
    """The cosine of the other model that keeps the share of its pairs that `least` keeps of those of `use`."""
    return float(np.quantile(other, 1 - (use >= least).mean()))


def figures(pairs: Pairs) -> list[dict[str, float]]:
    """For each least cosine of `use`: the other model's, and the shares of each kind of pairs that both keep."""
    rows = []
    for least in OF_USE:
        row = {"use": least, "other": equal_share(least, pairs.use[pairs.apart], pairs.other[pairs.apart])}
        for kind, of_kind in (("apart", pairs.apart), ("evidence", pairs.evidence), ("neighbours", pairs.neighbours)):
            if of_kind.any():
                row[f"{kind}_use"] = float((pairs.use[of_kind] >= least).mean())
                row[f"{kind}_other"] = float((pairs.other[of_kind] >= row["other"]).mean())
        rows.append({name: round(value, 4) for name, value in row.items()})
    return rows


@click.command()
@click.argument("messages", type=File)
@click.argument("questions", type=File, required=False)
@click.option("--names", type=File, help="Names of the speakers in each user's conversations.")
@click.option("--backend", default="e5", show_default=True, help="The embedding backend beside `use`.")
@click.option("--json", "as_json", is_flag=True, help="End with one line holding a JSON object.")
def main(messages: Path, questions: Path | None, names: Path | None, backend: str, as_json: bool) -> None:
    """Find the cosines that keep as many pairs of memories as those of `use`."""
    said = named(lines(messages), lines(names)) if names else lines(messages)
    asked = questions_of(lines(questions), said) if questions else []
    pairs = pairs_of(run(memories_of(said)), asked, backend)
    rows = figures(pairs)
    together = f"evidence {pairs.evidence.sum():,}, neighbours {pairs.neighbours.sum():,}"
    table = Table(title=f"{messages.name}, {len(pairs.use):,} pairs: {together}")
    for name in rows[0]:
        table.add_column(name.replace("other", backend), justify="right")
    for row in rows:
        table.add_row(*(f"{value:.4f}" for value in row.values()))
    Console().print(table)
    if as_json:
        click.echo(orjson.dumps({"pairs": len(pairs.use), "rows": rows}).decode())


if __name__ == "__main__":
    main()
