"""The `siltstone` command: one subcommand a file.

Exit 0 good, 1 failed, 2 wrong usage; an error is one clear line that says what to do, never a traceback.
"""

from __future__ import annotations

import sys

import click

from schemas.errors import SettingsError, SiltstoneError
from streams.cli.archive import archive
from streams.cli.context import context
from streams.cli.demo import demo
from streams.cli.dev import dev
from streams.cli.doctor import doctor
from streams.cli.explain import explain
from streams.cli.ingest import ingest
from streams.cli.rebuild_index import rebuild_indexes
from streams.cli.reembed import reembed
from streams.cli.replay import replay
from streams.cli.running import configure_logging
from streams.cli.search import search
from streams.cli.snapshot import snapshot
from streams.cli.stats import stats
from streams.cli.worker import worker


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="siltstone")
def cli() -> None:
    """Conversation memory: Kafka topics of chat messages become memories that answer questions.

    Settings come from config.yaml (or the file that SILTSTONE_CONFIG names) and the environment, e.g.
    SILTSTONE_KAFKA__BOOTSTRAP_SERVERS; a command's options win.
    """


for _command in (
    demo,
    dev,
    worker,
    ingest,
    search,
    context,
    explain,
    stats,
    archive,
    snapshot,
    doctor,
    reembed,
    rebuild_indexes,
    replay,
):
    cli.add_command(_command)


def main() -> None:
    """The entry point."""
    configure_logging("WARNING")
    try:
        cli()
    except SettingsError as exc:
        for problem in exc.problems:
            click.echo(f"siltstone: {problem}", err=True)
        sys.exit(1)
    except SiltstoneError as exc:
        click.echo(f"siltstone: {exc}", err=True)
        sys.exit(1)
