"""`make test-kafka`: what is run on Apache Kafka.

All of `tests/kafka/`; and of the other tests those in which a broker could make a difference: the whole way through
a worker, the hot path on its consumer and producer, replays, and the crash harness's lives.
"""

from __future__ import annotations

import os
import sys

from tests.kafka.source import MISSING, found

END_TO_END = (
    "tests/worker/test_losses.py",
    "tests/worker/test_pipeline.py",
    "tests/worker/test_replay.py",
    "tests/worker/test_memories.py",
    "tests/worker/test_short_term_way.py",
    # The consumer and the commit protocol; other tests beside them are of the embedded broker's own ways.
    "tests/streams/kafka/commit",
    "tests/streams/kafka/faust",
    "tests/streams/kafka/test_acknowledgements.py",
    "tests/streams/kafka/test_commits.py",
    "tests/streams/kafka/test_connection.py",
    "tests/streams/kafka/test_handing_over.py",
    "tests/streams/kafka/test_moved_meanwhile.py",
    "tests/streams/kafka/test_new_broker.py",
    "tests/streams/kafka/test_rows_on_disk.py",
    "tests/streams/kafka/test_seeks.py",
)
#: Kills in the middle of the work and right after a write, and what one worker leaves to another.
LIVES = (
    "tests/crash/test_kill.py",
    "tests/crash/test_workers.py",
)
#: Brokers are waited for most of the time; a file's tests share theirs. In this order: `tests/kafka` takes longest.
BESIDE = ("--numprocesses", "3", "--dist", "loadfile", "--no-loadscope-reorder")


def main() -> None:
    if found() is None:
        sys.exit(MISSING)
    arguments = sys.argv[1:]
    if all(argument.startswith("-") for argument in arguments):
        arguments += ["tests/kafka", *END_TO_END, *LIVES]
    os.execv(sys.executable, [sys.executable, "-m", "pytest", "--broker", "kafka", *BESIDE, *arguments])


if __name__ == "__main__":
    main()
