"""`python -m tests.fuzz.target FOLDER [options of libFuzzer]`: looks for a log that would stop a worker.

Guided by the coverage of our own code. At the first such log it ends with an error, and leaves the log in FOLDER;
`python -m tests.fuzz.target OTHER_FOLDER THE_LOG` tries it again.
"""

from __future__ import annotations

import logging
import random
import sys
from pathlib import Path

import atheris

OURS = [
    "schemas",
    "tables",
    "streams.forgetting",
    "streams.intake",
    "streams.kafka.dead_letters",
    "streams.kafka.event_log",
    "streams.kafka.inbox",
    "streams.kafka.rerouting",
    "streams.language",
    "streams.memory",
    "streams.shards",
    "streams.summaries",
]


def main() -> None:
    """Ends the process. With `--broken` there is something to be found."""
    program, folder, *options = sys.argv
    with atheris.instrument_imports(include=OURS):
        from tests.fuzz.trials import Trials, break_something, changed, seeds

    def mutate(data: bytes, size: int, seed: int) -> bytes:
        return changed(data, size, random.Random(seed), atheris.Mutate)

    logging.disable(logging.CRITICAL)
    if "--broken" in options:
        options.remove("--broken")
        break_something()
    corpus = Path(folder) / "corpus"
    seeds(corpus)
    if all(option.startswith("-") for option in options):
        options.append(str(corpus))
    options.insert(0, f"-artifact_prefix={folder}/")
    atheris.Setup([program, *options], Trials(Path(folder)).attempt, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
