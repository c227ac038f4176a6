"""How well memories are found, on the sets that memory systems are compared by, in one repeatable command.

    python benchmarks/quality.py --data DIR [--longmemeval FILE] [--beam FILE_OR_FOLDER] [--limit 50]
        [--unit message|exchange|session] [--adversarial] [--corrections FILE]…
        [--backend use] [--model NAME_OR_FOLDER] [--rerank NAME_OR_FOLDER] [--picture quality.png] [--json]

`DIR` has `locomo_en.messages.dev.jsonl`, `locomo_en.questions.dev.jsonl`, `locomo_en.users.jsonl` and MemDaily's
(`memdaily_dedup_zh.…`); missing files are skipped. This repository has no data: each set has its own licence.
`--longmemeval` takes a published file (`longmemeval_s.json`), `--beam` rows (Parquet, JSON) or a folder of chats.

Messages go through the broker, the windows and the shards of a real worker under policy `all`, where every exchange
is a memory, and again under `weighted`, the default: no question finds an exchange that it does not promote. The
worker's ranking is compared with BM25 alone, the dense model alone and their reciprocal-rank fusion, over the same
memories.

A hit is a message, an exchange (a memory) or a session that holds evidence (`--unit`). By default each set has its
own: LongMemEval's file sessions, the others exchanges. A session is at the place of its best exchange; a ranking has
all of a user's memories, so that under `all` no session is missing, unless its memories were merged as copies of
others. Pieces of evidence in one unit count as one; pieces that were dropped under `weighted` count as not found.

R@k is the share of a question's evidence in the first k, `recall_any` the share of questions with some of it there
(the hit rate, which others often call R@k), `recall_all` the share with all of it; MRR and NDCG have their usual
definitions. `current_first` is the share of the questions about an updated statement where no outdated one is before
the one that holds; it is measured by exchanges, whatever the unit.

`--adversarial` also asks the questions that must not be answered, whose evidence is what they confuse. They are kinds
of their own; the row `all_with_adversarial` counts them, and the row `all` is what it is without them.
`--corrections` changes the key of the sets in `DIR` (format: `benchmarks/evidence/corrections.py`). `--limit` asks
this many questions of each set: a first look, not a result.
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split

import math
import os
import shlex
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import click
import numpy as np
import orjson
from rich.console import Console
from rich.table import Table

from schemas.memories import SearchHit
from streams.doors.cli.process import run

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.evidence.asking import answers, fed, reranked, without
from benchmarks.evidence.corrections import Correction, read_corrections
from benchmarks.evidence.measures import Group, current_first, fused, measured, places_of, ranks_of
from benchmarks.evidence.picture import draw
from benchmarks.evidence.sets import ADVERSARIAL, EvidenceSet, beam, digest_of, line_files, loaded, longmemeval
from benchmarks.evidence.units import UNITS, Unit, held, pieces_of

POLICIES: Final = ("all", "weighted")
#: The sets in the folder, each with its speakers' names if they are known.
SETS: Final = ("locomo_en", "memdaily_dedup_zh", "automemory_en", "rhelm_en", "longmemeval_en")
#: Columns of the table, and their measures. `--json` has all measures at 1, 3, 5 and 10.
SHOWN: Final = {
    **{f"R@{k}": f"r{k}" for k in (1, 3, 5, 10)},
    **{f"any@{k}": f"recall_any{k}" for k in (1, 5, 10)},
    **{f"all@{k}": f"recall_all{k}" for k in (5, 10)},
    "MRR": "mrr",
    "NDCG@5": "ndcg5",
    "NDCG@10": "ndcg10",
    "current first": "current_first",
}
#: Of the table, so that it does not depend on the terminal.
WIDTH: Final = 180

#: Steps of the ranking that are also left out, one at a time.
STEPS: Final[tuple[Literal["updates", "times"], ...]] = ("updates", "times")

#: Each question's measures, by the ranking's name and the kind of question.
Found = dict[str, dict[str, list[dict[str, float]]]]
Figures = dict[str, dict[str, dict[str, float]]]


def orders(hits: Sequence[SearchHit]) -> dict[str, list[SearchHit]]:
    """The worker's ranking, and others of the same memories; of equals, the newest comes first."""
    newest = sorted(hits, key=lambda hit: hit.created_at, reverse=True)
    why: list[dict[str, Any]] = [hit.explain or {} for hit in newest]
    words, dense = ([int(one[f"{name}_rank"]) for one in why] for name in ("bm25", "cosine"))
    scores: dict[str, Sequence[float]] = {
        "BM25": [-rank for rank in words],
        "dense": [-rank for rank in dense],
        "RRF": fused(words, dense),
    }
    best = {
        name: [newest[row] for row in sorted(range(len(newest)), key=lambda row: -values[row])]
        for name, values in scores.items()
    }
    return {"siltstone": list(hits), **best}


async def results(asked: EvidenceSet, backend: str, model: str, quiet: bool) -> tuple[Found, dict[str, int]]:
    """Measure policy `all` first: it loses nothing, so it shows which pieces of evidence are in one exchange.

    The second value is the number of promoted exchanges under each policy.
    """
    found: Found = defaultdict(lambda: defaultdict(list))
    promoted = {}
    pieces, sessions = list[list[Group]](), asked.sessions
    for policy in POLICIES:
        async with fed(asked.messages, policy, backend, model) as worker:
            promoted[policy] = worker.metrics.promoted()
            number = 0
            async for question, hits in answers(worker, asked.questions, explain=policy == "all", quiet=quiet):
                ranked = orders(hits) if policy == "all" else {"siltstone": hits}
                for step in STEPS if policy == "all" else ():
                    ranked[f"siltstone without {step}"] = await without(worker, question, step)
                if policy == "all" and worker.settings.rerank.model:
                    ranked["siltstone with rerank"] = await reranked(worker, question)
                for name, order in ranked.items():
                    exchanges = places_of(held(order, "exchange"))
                    if len(pieces) == number:
                        pieces.append(pieces_of(question.evidence, asked.unit, exchanges, sessions))
                    named = f"{name}, {policy}" if name == "siltstone" else name
                    figures = measured(ranks_of(pieces[number], places_of(held(order, asked.unit))))
                    figures["current_first"] = current_first(question.updates, exchanges)
                    found[named][question.kind].append(figures)
                number += 1
    return found, promoted


def means(found: Found) -> Figures:
    """The means of each ranking: by kind of question, and over all questions without and with adversarial ones."""
    figures: Figures = {}
    for name, kinds in found.items():
        rows = {**dict(sorted(kinds.items())), "all": _of(kinds, kinds.keys() - ADVERSARIAL)}
        if ADVERSARIAL & kinds.keys():
            rows["all_with_adversarial"] = _of(kinds, kinds.keys())
        measures = next(iter(kinds.values()))[0].keys()
        figures[name] = {kind: {"n": len(of_kind), **_mean(of_kind, measures)} for kind, of_kind in rows.items()}
    return figures


def _of(by_kind: Mapping[str, list[dict[str, float]]], kinds: Collection[str]) -> list[dict[str, float]]:
    return [row for kind, rows in by_kind.items() if kind in kinds for row in rows]


def _mean(rows: Sequence[dict[str, float]], measures: Collection[str]) -> dict[str, float]:
    values = {measure: [row[measure] for row in rows if not np.isnan(row[measure])] for measure in measures}
    return {measure: round(float(np.mean(found)), 4) if found else math.nan for measure, found in values.items()}


def sets_of(
    data: Path | None,
    lme: Path | None,
    beams: Path | None,
    adversarial: bool,
    corrections: Sequence[Correction],
) -> Iterator[EvidenceSet]:
    for name in SETS if data is not None else ():
        assert data is not None
        messages, questions = (data / f"{name}.{what}.dev.jsonl" for what in ("messages", "questions"))
        users = data / f"{name}.users.jsonl"
        if messages.is_file() and questions.is_file():
            yield line_files(messages, questions, users if users.is_file() else None, adversarial, corrections)
    if lme is not None:
        yield loaded(partial(longmemeval, adversarial=adversarial), lme)
    if beams is not None:
        yield loaded(beam, beams)


def shown(asked: EvidenceSet, figures: Figures) -> Table:
    title = f"{asked.name}: {len(asked.questions):,} questions, {len(asked.messages):,} messages, unit {asked.unit}"
    if asked.corrected is not None:
        title += f", corrected: {asked.corrected.changed} changed, {asked.corrected.dropped} dropped"
    table = Table("ranking", "questions of kind", "n", *SHOWN, title=title)
    for name, kinds in figures.items():
        for kind, one in kinds.items():
            if kind.startswith("all") or name.startswith("siltstone"):
                table.add_row(name, kind, f"{one['n']:,}", *(f"{one[measure]:.3f}" for measure in SHOWN.values()))
    return table


@click.command()
@click.option(
    "--data", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Folder of LoCoMo and MemDaily."
)
@click.option("--longmemeval", "lme", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--beam", "beams", type=click.Path(exists=True, path_type=Path), help="A file of rows, or a folder.")
@click.option("--unit", type=click.Choice(UNITS), help="What counts as a hit.  [default: each set's own]")
@click.option("--adversarial", is_flag=True, help="Also ask the questions that must not be answered.")
@click.option(
    "--corrections",
    "correcting",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="Corrected evidence for questions of --data; several files are possible.",
)
@click.option("--limit", type=click.IntRange(1), help="Ask this many questions of each set: a first look.")
@click.option("--backend", default="use", show_default=True, help="The embedding backend.")
@click.option("--model", default="", help="The embedding model: a name, or a folder.  [default: the backend's]")
@click.option("--rerank", default="", help="Also rerank by this model; a service: SILTSTONE_RERANK__… in addition.")
@click.option("--picture", type=click.Path(dir_okay=False, path_type=Path), help="Draw the result; needs matplotlib.")
@click.option("--json", "as_json", is_flag=True, help="End with one line holding a JSON object.")
def main(
    data: Path | None,
    lme: Path | None,
    beams: Path | None,
    unit: Unit | None,
    adversarial: bool,
    correcting: tuple[Path, ...],
    limit: int | None,
    backend: str,
    model: str,
    rerank: str,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Measure how well the evidence of questions is found."""
    if rerank:
        os.environ["SILTSTONE_RERANK__MODEL"] = rerank
    corrections = read_corrections(correcting)
    sets = list(sets_of(data, lme, beams, adversarial, corrections))
    if not sets:
        raise click.ClickException(f"nothing to ask: give --data with {SETS[0]}.messages.dev.jsonl, or another set")
    if corrections and not any(one.corrected and one.corrected.matched for one in sets):
        raise click.ClickException("--corrections names no question of the sets in --data")
    sets = [replace(one, unit=unit or one.unit).first(limit) for one in sets]
    whole: dict[str, Any] = {}
    for one in sets:
        found, promoted = run(results(one, backend, model, quiet=as_json))
        figures = means(found)
        Console(width=WIDTH).print(shown(one, figures))
        cost = figures["siltstone, weighted"]["all"]["mrr"] / figures["siltstone, all"]["all"]["mrr"]
        share = promoted["weighted"] / promoted["all"]
        Console().print(
            f"weighted promotes {share:.3f} of {promoted['all']:,} exchanges and keeps {cost:.3f} of the MRR of all; "
            f"data sha256 {one.digest[:16]}…"
        )
        about: dict[str, Any] = {"unit": one.unit, "sha256": one.digest, "mrr_ratio_all": round(cost, 4)}
        if one.corrected is not None:
            changed, dropped = one.corrected.changed, one.corrected.dropped
            about["corrections"] = {"sha256": digest_of([*correcting]), "changed": changed, "dropped": dropped}
        whole[one.name] = {**about, "promoted_share": round(share, 4), "by": figures}
    if picture is not None:
        draw({name: one["by"] for name, one in whole.items()}, picture)
    if as_json:
        command = shlex.join(["python", "benchmarks/quality.py", *sys.argv[1:]])
        about = {"model": model or backend, "backend": backend, "limit": limit, "command": command}
        click.echo(orjson.dumps({**about, "sets": whole}).decode())


if __name__ == "__main__":
    main()
