"""`siltstone worker`."""

from __future__ import annotations

from pathlib import Path

import click

from schemas.settings import Settings
from streams.cli import running

LEVELS = click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"])


data_option = click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), help="Data directory.  [default: data_dir]"
)
bootstrap_option = click.option(
    "--bootstrap-servers", help="The Kafka brokers, host:port.  [default: kafka.bootstrap_servers]"
)
port_option = click.option(
    "--port", type=click.IntRange(0, 65_535), help="HTTP port, 0 for a free one.  [default: http.port]"
)


def with_options(settings: Settings, data: Path | None, bootstrap_servers: str | None, port: int | None) -> Settings:
    """The settings, with what a command's options say instead."""
    changes: dict[str, object] = {}
    if data is not None:
        changes["data_dir"] = data
    if bootstrap_servers is not None:
        changes["kafka"] = settings.kafka.model_copy(update={"bootstrap_servers": bootstrap_servers})
    if port is not None:
        changes["http"] = settings.http.model_copy(update={"port": port})
    return settings.model_copy(update=changes)


@click.command()
@data_option
@bootstrap_option
@port_option
@click.option("--log-level", type=LEVELS, default="INFO", show_default=True)
def worker(data: Path | None, bootstrap_servers: str | None, port: int | None, log_level: str) -> None:
    """Run a worker against the Kafka brokers of the settings, until Ctrl-C.

    A broker that is down is waited for.
    """
    running.configure_logging(log_level)
    running.run(_run(with_options(Settings.load(), data, bootstrap_servers, port)))


async def _run(settings: Settings) -> None:
    async with running.started(settings, patient=True) as siltstone:
        await running.until_ready(siltstone)
        click.echo(
            f"worker ready: http://{settings.http.host}:{siltstone.port}, "
            f"brokers {settings.kafka.bootstrap_servers}, data in {settings.data_dir}",
            err=True,
        )
        await running.until_interrupted(siltstone)
