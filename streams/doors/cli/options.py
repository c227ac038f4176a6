"""Options that several commands share."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import click

from schemas.settings import Settings

LEVELS = click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"])


class _Day(click.ParamType):
    name = "YYYY-MM-DD"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return date.fromisoformat(value).isoformat()
        except ValueError as exc:
            self.fail(f"{value!r} is not a date: {exc}", param, ctx)


#: The click type of an option that is a date. It converts the date to the form that the API accepts.
DAY = _Day()


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
    """Return the settings with the values of a command's options in place of the settings' own values."""
    changes: dict[str, object] = {}
    if data is not None:
        changes["data_dir"] = data
    if bootstrap_servers is not None:
        changes["kafka"] = settings.kafka.model_copy(update={"bootstrap_servers": bootstrap_servers})
    if port is not None:
        changes["http"] = settings.http.model_copy(update={"port": port})
    return settings.model_copy(update=changes)
