"""State that is larger than memory, and that moves between workers: its memory, and the time until it is back.

    python benchmarks/scale.py [--memories 1000000] [--windows N] [--store file|s3] [--legs memory,restart,…] [--json]

Memories are written directly into the shards and into the log (`benchmarks/state/filling.py`): with the events that
chat causes, and with random unit vectors instead of embedded texts. Everything after that is the program as it is:
`siltstone worker` in its own processes, on the embedded broker, with its model.

- **memory**: the shards in their own process: anonymous memory, the time to open, searches with no pages of the files
  in memory, and again. The memory of empty shards is subtracted.
- **windows**: small talk, which is not promoted, in sessions that have ended. The windows may keep 16 MiB in memory,
  which the first half of the sessions fills; the second half shows the memory of a message.
- **restart**: the worker is stopped, then killed, and starts again on its disk each time. For the bar, an empty
  worker's start, measured in the same run, is subtracted.
- **checkpoint**: a checkpoint is taken on demand; then a hundredth of the memories changes (half are new, half are
  accessed: `benchmarks/state/changes.py`), and the next one is taken. Then a worker with an empty disk takes over.
- **rebuild**: a worker with an empty disk and no checkpoint embeds the log. This is measured with a hundredth of the
  memories (at least 2,000; `rebuild_measured_with`) and multiplied.
- **warm**: two workers, each with warm copies of the other's partitions; one is killed.

A worker is back when `/readyz` says so and a user of each partition has found something: `…_s` is the time from the
start of the process, or from the kill, until then.
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
import orjson
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.state import legs
from benchmarks.state.filling import fill as fill_log
from benchmarks.state.opened_shards import measure as measure_shards
from schemas.settings import KafkaSettings
from streams.doors.cli.process import configure_logging, run

Figures = dict[str, Any]

THIS_FILE: Final = str(Path(__file__).resolve())
SINGLE_THREADED: Final = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True, slots=True)
class Bar:
    """The upper limit of a figure."""

    figure: str
    title: str
    unit: str
    most: float


BARS: Final = (
    Bar("anon_bytes_per_memory", "anonymous memory a stored memory", "bytes", 120),
    Bar("anon_bytes_per_window_message", "anonymous memory a message in a silent window", "bytes", 20),
    Bar("restart_beyond_empty_s", "restart on the same disk, beyond an empty worker's start", "s", 3),
    Bar("restore_s", "successor with an empty disk, from the checkpoint", "s", 30),
    Bar("warm_takeover_s", "the same with a warm copy, from the kill", "s", 8),
    Bar("search_first_ms", "first search of a user, nothing of the files in memory, p50", "ms", 15),
    Bar("uploaded_share", "uploaded after 1 % of the memories changed", "of all", 0.05),
)
BESIDE: Final = (
    ("anon_bytes_per_window_message_restarted", "the same after a restart, beside one without windows", "bytes"),
    ("anon_bytes_per_memory_searched", "anonymous memory a memory after 1,000 users asked, caches in it", "bytes"),
    ("search_warm_us", "search again, by words as well, p50", "µs"),
    ("vectors_p50_ms", "search again, by vectors alone, p50", "ms"),
    ("search_first_p99_ms", "first search, p99", "ms"),
    ("open_s", "shards open after", "s"),
    ("disk_bytes_per_memory", "a memory on disk", "bytes"),
    ("empty_start_s", "an empty worker's start", "s"),
    ("restart_s", "restart on the same disk", "s"),
    ("restart_killed_s", "the same after a kill", "s"),
    ("rebuild_s", "successor with an empty disk and no checkpoint", "s"),
    ("takeover_s", "a lost worker's partitions, from checkpoints, from the kill", "s"),
    ("checkpoint_s", "the first checkpoint of all partitions", "s"),
)

#: The figures that docs/scale.md computes with.
FIGURES: Final = frozenset(
    {
        *(bar.figure for bar in BARS),
        *(name for name, _, _ in BESIDE),
        *("disk_bytes_per_window_message", "empty_takeover_s", "rebuild_per_s"),
        *("restart_beyond_empty_s", "restore_beyond_empty_s", "uploaded_mb"),
    }
)


def table(figures: Figures) -> Table:
    """A table of the figures with a bar, and then of the others."""
    title = f"{figures['memories']:,} memories, {figures['window_rows']:,} window rows, store: {figures['store']}"
    shown = Table("", "measured", "bar", "", title=title)
    for bar in BARS:
        if (value := figures.get(bar.figure)) is not None:
            shown.add_row(
                bar.title, f"{value:,g} {bar.unit}", f"≤ {bar.most:g}", "" if value <= bar.most else "NOT REACHED"
            )
    shown.add_section()
    for name, title, unit in BESIDE:
        if name in figures:
            shown.add_row(title, f"{figures[name]:,g} {unit}", "", "")
    return shown


def in_a_process(*arguments: object) -> Figures:
    """Run a hidden command of this script in a process with its own memory; return its figures."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", THIS_FILE, *map(str, arguments)],
        check=False,
        stdout=subprocess.PIPE,
        env=os.environ | SINGLE_THREADED,
    )
    if done.returncode:
        raise click.ClickException(f"{arguments[0]} ended with exit code {done.returncode}")
    told: Figures = orjson.loads(done.stdout.splitlines()[-1])
    return told


@click.group(invoke_without_command=True)
@click.option("--memories", type=click.IntRange(min=1_000), default=1_000_000, show_default=True)
@click.option("--windows", type=click.IntRange(min=1), help="Rows in the windows. Default: as many as memories.")
@click.option("--partitions", type=click.IntRange(min=1, max=64), default=4, show_default=True)
@click.option("--store", type=click.Choice(["file", "s3"]), default="file", show_default=True)
@click.option("--legs", "wanted", default=",".join(legs.ALL), show_default=True, help="The parts to measure.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="A folder for temporary data.")
@click.option("--json", "as_json", is_flag=True, help="End with one line holding a JSON object.")
@click.pass_context
def main(
    context: click.Context,
    memories: int,
    windows: int | None,
    partitions: int,
    store: str,
    wanted: str,
    folder: Path | None,
    as_json: bool,
) -> None:
    """Measure the memory that state takes, and the time until it is back."""
    if context.invoked_subcommand:
        return
    chosen = frozenset(wanted.split(","))
    if unknown := chosen - frozenset(legs.ALL):
        raise click.BadParameter(
            f"{', '.join(sorted(unknown))}: choose from {', '.join(legs.ALL)}", param_hint="--legs"
        )
    configure_logging("WARNING")
    plan = legs.Plan(memories, memories if windows is None else windows, partitions, store, chosen)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as root:
        figures = run(legs.measure(plan, Path(root), in_a_process))
    Console().print(table(figures))
    if as_json:
        click.echo(orjson.dumps(figures))


@main.command(hidden=True)
@click.argument("servers")
@click.argument("prefix")
@click.argument("partitions", type=int)
@click.argument("memories", type=int)
@click.argument("folder", type=click.Path(path_type=Path), required=False)
def fill(servers: str, prefix: str, partitions: int, memories: int, folder: Path | None) -> None:
    """Write memories into a log, and into shards in a folder."""
    kafka = KafkaSettings(bootstrap_servers=servers, topic_prefix=f"{prefix}.", group_id=prefix)
    told = run(fill_log(kafka.model_copy(update={"partitions": partitions}), folder, memories))
    click.echo(orjson.dumps(told))


@main.command(hidden=True)
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("memories", type=int)
@click.argument("partitions", type=int)
def shards(folder: Path, memories: int, partitions: int) -> None:
    """Open shards, and search them."""
    click.echo(orjson.dumps(measure_shards(folder, memories, partitions)))


if __name__ == "__main__":
    main()
