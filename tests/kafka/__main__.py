"""`make test-kafka`: what is run on Apache Kafka.

All of `tests/kafka/`; and of the other tests those in which a broker could make a difference: the whole way through
a worker, the hot path on its consumer and producer, replays, and the crash harness's lives.
"""

from __future__ import annotations

import os
import sys

from tests.kafka.source import MISSING, found

END_TO_END = (
    "tests/test_pipeline.py",
    "tests/test_replay.py",
    "tests/test_memories.py",
    "tests/test_short_term_way.py",
    "tests/streams/hotpath",
)
#: Kills in the middle of the work and right after a write, and what one worker leaves to another.
LIVES = (
    "tests/crash/test_kill.py",
    "tests/crash/test_workers.py",
)


def main() -> None:
    if found() is None:
        sys.exit(MISSING)
    arguments = sys.argv[1:] or ["tests/kafka", *END_TO_END, *LIVES]
    os.execv(sys.executable, [sys.executable, "-m", "pytest", "--broker", "kafka", *arguments])


if __name__ == "__main__":
    main()
