"""`siltstone doctor`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from streams.doctor import Finding, Outcome, ReadSettings, examine
from streams.doors.cli import show
from streams.doors.cli.client import json_option
from streams.doors.cli.options import bootstrap_option, data_option, port_option, with_options
from streams.doors.cli.process import configure_logging, run

STYLE = {Outcome.OK: "green", Outcome.WARNING: "yellow", Outcome.FAILED: "bold red"}


@click.command()
@data_option
@bootstrap_option
@port_option
@json_option
def doctor(data: Path | None, bootstrap_servers: str | None, port: int | None, as_json: bool) -> None:
    """Check whether a worker could run here, and say what is wrong and how to fix it.

    Checks the settings, the broker and its topics, the data directory and its shards, the embedding model, the rating
    model (with one request, if configured), access to the API, and the HTTP port. Nothing is changed. The exit code
    is 1 if anything failed.
    """
    configure_logging("CRITICAL")
    reading = ReadSettings.now()
    if reading.settings is not None:
        settings = with_options(reading.settings, data, bootstrap_servers, port)
        reading = replace(reading, settings=settings)
    console = show.console()
    if as_json:
        findings = run(examine(reading))
        show.as_json({"ok": not _failed(findings), "findings": [asdict(finding) for finding in findings]})
    else:
        with console.status("Checking …"):
            findings = run(examine(reading))
        console.print(_table(findings))
        console.print(_summary(findings))
    if _failed(findings):
        raise SystemExit(1)


def _failed(findings: Sequence[Finding]) -> bool:
    return any(finding.outcome is Outcome.FAILED for finding in findings)


def _table(findings: Sequence[Finding]) -> Table:
    """Return a table of the findings. It has no borders, so that a narrow terminal has more space for the text."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        text = Text(finding.what)
        if finding.todo:
            text.append(f"\n→ {finding.todo}", "dim")
        table.add_row(Text(finding.outcome, STYLE[finding.outcome]), finding.check, text)
    return table


def _summary(findings: Sequence[Finding]) -> str:
    counted = Counter(finding.outcome for finding in findings)
    problems = [f"{counted[outcome]} {outcome}" for outcome in (Outcome.FAILED, Outcome.WARNING) if counted[outcome]]
    return f"{', '.join(problems)}." if problems else "All is well."
