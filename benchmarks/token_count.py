"""Measures the error of the estimated number of tokens (`streams/models/token_count.py`) on sets of chats.

    pip install "tiktoken>=0.8" "litellm>=1.60"      # litellm's wheel contains the vocabulary cl100k_base
    python benchmarks/token_count.py ../shared/data/*.messages.dev.jsonl

For each file: the estimate of all texts divided by their tokens, and the 5 %, 50 % and 95 % quantiles of this ratio
for texts of at least 20 tokens.
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split

import os
from importlib.util import find_spec
from pathlib import Path

import click
import numpy as np
import orjson

from streams.models.token_count import estimated_tokens

LEAST = 20


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each file.")
def main(files: tuple[Path, ...], as_json: bool) -> None:
    """Compare estimated tokens with those of cl100k_base, for each of the FILES of messages."""
    if (package := find_spec("litellm")) is None or package.origin is None:
        raise click.ClickException('the vocabulary is missing: pip install "tiktoken>=0.8" "litellm>=1.60"')
    os.environ.setdefault(
        "TIKTOKEN_CACHE_DIR", str(Path(package.origin).parent / "litellm_core_utils" / "tokenizers")
    )
    import tiktoken  # type: ignore[import-not-found]  # imported here, because it reads the folder from the environment

    counts = tiktoken.get_encoding("cl100k_base")
    for file in files:
        texts = [orjson.loads(line).get("content") for line in file.read_bytes().splitlines()]
        texts = [text for text in texts if isinstance(text, str) and text]
        true = np.array([len(counts.encode(text, disallowed_special=())) for text in texts])
        estimated = np.array([estimated_tokens(text) for text in texts])
        ratios = (estimated / true)[true >= LEAST]
        low, middle, high = (round(float(one), 2) for one in np.quantile(ratios, (0.05, 0.5, 0.95)))
        total, ratio = int(true.sum()), round(float(estimated.sum() / true.sum()), 3)
        if as_json:
            found = {"file": file.name, "texts": len(texts), "tokens": total, "ratio": ratio}
            click.echo(orjson.dumps({**found, "quantiles": [low, middle, high]}))
        else:
            click.echo(f"{file.name}: {ratio} of {total:,} tokens; single texts: {low}, {middle}, {high}")


if __name__ == "__main__":
    main()
