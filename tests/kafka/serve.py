"""Brokers of Apache Kafka for whoever wants some, for a benchmark or to look around, until Ctrl-C.

python -m tests.kafka.serve --brokers 3      # KAFKA_HOME, or Docker, as for `make test-kafka`
"""

from __future__ import annotations

import contextlib
import signal
import sys

import click

from tests.kafka.cluster import cluster
from tests.kafka.source import MISSING, found


@click.command()
@click.option("--brokers", default=1, show_default=True, type=click.IntRange(1, 3))
def main(brokers: int) -> None:
    """Run so many brokers; prints what a benchmark is to be told, and works until it is ended.

    With several, what is produced is acknowledged when all but one of them have it. Their topics are gone afterwards.
    """
    if (source := found()) is None:
        sys.exit(MISSING)
    for number in (signal.SIGINT, signal.SIGTERM):  # in a shell's background, a Ctrl-C would be ignored
        signal.signal(number, signal.default_int_handler)
    with (
        contextlib.suppress(KeyboardInterrupt),
        cluster(source, brokers, properties={"min.insync.replicas": str(max(1, brokers - 1))}) as running,
    ):
        click.echo(f"--bootstrap-servers {running.bootstrap_servers} --replication {running.replication}")
        sys.stdout.flush()
        while True:
            signal.pause()


if __name__ == "__main__":
    main()
