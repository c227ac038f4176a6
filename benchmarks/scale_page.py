"""Write the tables of docs/scale.md again, from the output of the page's program.

    python benchmarks/scale_page.py

Run it after a change of a figure at the top of the program; a test fails if this was forgotten.
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split
import contextlib
import io
import re
from pathlib import Path
from typing import Any, Final

import click

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "scale.md"


def computed(page: str) -> dict[str, Any]:
    """The names of the page's program at its end, with its output as `printed`."""
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(program, names)
    return {**names, "printed": printed.getvalue()}


def tables_of(printed: str) -> list[str]:
    """The tables, each with its head, without the empty line before it."""
    return [table.strip("\n") for table in printed.split("\n\n") if table.strip()]


def rewritten(page: str) -> str:
    """The page with the tables that its program prints. The n-th table with a head takes the n-th place of that head.

    Raises `ValueError` if the page has no place for a table: add its head there, with the rule below it.
    """
    at = dict[str, int]()
    for table in tables_of(computed(page)["printed"]):
        top = "\n".join(table.splitlines()[:2])
        start = page.find(top + "\n", at.get(top, 0))
        if start < 0:
            raise ValueError(f"docs/scale.md has no place for the table {top.splitlines()[0]}")
        end = page.index("\n\n", start)
        page = page[:start] + table + page[end:]
        at[top] = start + len(table)
    return page


@click.command()
def main() -> None:
    """Write the tables of docs/scale.md again."""
    before = PAGE.read_text(encoding="utf-8")
    after = rewritten(before)
    PAGE.write_text(after, encoding="utf-8")
    click.echo("docs/scale.md is unchanged" if after == before else "docs/scale.md is rewritten")


if __name__ == "__main__":
    main()
