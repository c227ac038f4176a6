"""`siltstone dev`."""

from __future__ import annotations

from pathlib import Path

import click

from schemas.settings import Settings
from streams.app import Siltstone
from streams.doors.cli import show
from streams.doors.cli.ingest_line import ingest_line
from streams.doors.cli.options import LEVELS, port_option
from streams.doors.cli.process import configure_logging, run, write_as_let_in
from streams.doors.cli.running import dashboard, serve
from streams.kafka.clients.broker import embedded_broker
from tables.partition_record import recorded_partitions
from tables.privacy import make_private

#: The path of the embedded broker's log in the data directory.
JOURNAL = Path("journal") / "broker.log"


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("siltstone-data"),
    show_default=True,
    help="Directory for the memories and the broker's log.",
)
@port_option
@click.option("--kafka-port", type=click.IntRange(0, 65_535), default=0, help="Kafka port.  [default: a free one]")
@click.option("--log-level", type=LEVELS, default="WARNING", show_default=True)
def dev(data: Path, port: int | None, kafka_port: int, log_level: str) -> None:
    """Run a broker, a worker and the HTTP API together, until Ctrl-C.

    All data is kept in the data directory, including the broker's topics. The next start continues from there, even
    after a crash.
    """
    configure_logging(log_level, serving=True)
    settings = _with_noted_partitions(Settings.load(), data)
    write_as_let_in(data)
    make_private(data)  # before the broker writes its log there
    with embedded_broker(kafka_port, data / JOURNAL, settings.dev.journal_seconds) as broker:
        embedded = settings.model_copy(
            update={
                "data_dir": data,
                "kafka": broker.settings(settings.kafka),
                "http": settings.http if port is None else settings.http.model_copy(update={"port": port}),
            }
        )
        run(serve(embedded, patient=False, announce=_announce, beside=broker.watch))


def _with_noted_partitions(settings: Settings, data: Path) -> Settings:
    """Return the settings, with the number of partitions that is recorded in the data directory.

    If the settings set `kafka.partitions`, or if no number is recorded, they are returned unchanged. Raises
    `DataDirError` if the recorded number cannot be read.
    """
    noted = recorded_partitions(data)
    if noted is None or "partitions" in settings.kafka.model_fields_set:
        return settings
    kafka = settings.kafka.model_copy(update={"partitions": noted})
    return settings.model_copy(update={"kafka": kafka})


def _announce(worker: Siltstone) -> None:
    settings, console = worker.settings, show.console()
    base = f"http://{settings.http.host}:{worker.api.port}"
    console.print(f"produce to  {settings.kafka.bootstrap_servers}, topic {worker.topics.conversations}")
    console.print(f"ingest      {ingest_line(settings.kafka.bootstrap_servers)}", soft_wrap=True, markup=False)
    console.print(f"ask         {base}  (pages at {base}/docs)")
    if settings.http.dashboard:
        console.print(f"look        {dashboard(worker)}")
    console.print(f"data        {settings.data_dir}")
    console.print("Ctrl-C stops it; the next start continues from there.")
