"""`siltstone worker`."""

from __future__ import annotations

from pathlib import Path

import click

from schemas.settings import Settings
from streams.app import Siltstone
from streams.doors.cli.options import LEVELS, bootstrap_option, data_option, port_option, with_options
from streams.doors.cli.process import configure_logging, run, write_as_let_in
from streams.doors.cli.running import serve
from tables.privacy import make_private


@click.command()
@data_option
@bootstrap_option
@port_option
@click.option("--log-level", type=LEVELS, default="INFO", show_default=True)
def worker(data: Path | None, bootstrap_servers: str | None, port: int | None, log_level: str) -> None:
    """Run a worker against the Kafka brokers of the settings, until Ctrl-C.

    If the broker is down, the worker waits for it.
    """
    configure_logging(log_level, serving=True)
    settings = with_options(Settings.load(), data, bootstrap_servers, port)
    write_as_let_in(settings.data_dir)
    make_private(settings.data_dir)  # before its files are read
    run(serve(settings, patient=True, announce=_announce))


def _announce(worker: Siltstone) -> None:
    settings = worker.settings
    click.echo(
        f"worker ready: http://{settings.http.host}:{worker.api.port}, "
        f"brokers {settings.kafka.bootstrap_servers}, data in {settings.data_dir}",
        err=True,
    )
