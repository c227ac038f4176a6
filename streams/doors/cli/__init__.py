"""The `siltstone` command. Each subcommand has a file of its own.

Exit codes: 0 success, 1 failure, 2 wrong usage. An error is one line that says what to do, never a traceback.
"""

from __future__ import annotations

import logging
import os
import pkgutil
import sys
import traceback
from pathlib import Path

import click

import schemas.one_blas_thread  # noqa: F401 - before any command loads numpy
from schemas.errors import SettingsError, SiltstoneError, TopicsUnfit
from streams.doors.cli.process import configure_logging
from tables.privacy import OWNER_ALONE

log = logging.getLogger(__name__)

#: The module and the function of each command. The module is imported only when the command runs, because the modules
#: of a worker take a second to import.
COMMANDS = {
    "demo": "demo:demo",
    "dev": "dev:dev",
    "worker": "worker:worker",
    "ingest": "ingest:ingest",
    "import": "importing:import_file",
    "export": "exporting:export",
    "remember": "remember:remember",
    "search": "search:search",
    "list": "listing:memories",
    "context": "context:context",
    "profile": "profile:profile",
    "end-session": "end_session:end_session",
    "explain": "explain:explain",
    "summarize": "summarize:summarize",
    "summaries": "summaries:summaries",
    "stats": "stats:stats",
    "pin": "pin:pin",
    "unpin": "pin:unpin",
    "forget": "forget:forget",
    "archive": "archive:archive",
    "snapshot": "snapshot:snapshot",
    "token": "token:token",
    "mcp": "mcp:mcp",
    "doctor": "doctor:doctor",
    "checkpoint": "checkpoint:checkpoint",
    "reembed": "reembed:reembed",
    "rebuild-index": "rebuild_index:rebuild_indexes",
    "replay": "replay:replay",
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = pkgutil.resolve_name(f"streams.doors.cli.{COMMANDS[cmd_name]}")
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="siltstone")
def cli() -> None:
    """Conversation memory: Kafka topics of chat messages become memories that answer questions.

    Settings come from config.yaml (or the file that SILTSTONE_CONFIG names) and the environment, for example
    SILTSTONE_KAFKA__BOOTSTRAP_SERVERS. A command's options override them.
    """


def main() -> None:
    """Run the `siltstone` command line. Errors are printed without a traceback, and the exit code is then 1.

    New files can be read only by the user who runs the command. In a data directory that its group can read, commands
    let the group read new files too.
    """
    os.umask(OWNER_ALONE)
    configure_logging("WARNING")
    try:
        cli()
    except (SettingsError, TopicsUnfit) as exc:
        for problem in exc.problems:
            click.echo(f"siltstone: {problem}", err=True)
        sys.exit(1)
    except SiltstoneError as exc:
        click.echo(f"siltstone: {exc}", err=True)
        sys.exit(1)
    except Exception as exc:
        log.debug("traceback of the unexpected error", exc_info=exc)
        click.echo(f"siltstone: {_unforeseen(exc)}", err=True)
        sys.exit(1)


def _unforeseen(exc: Exception) -> str:
    """Describe an unexpected error in one line, with the file and the line that raised it."""
    said = str(exc).strip().splitlines()
    frames = traceback.extract_tb(exc.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"unexpected error: {type(exc).__name__}: {said[0] if said else 'no message'}{where}"
