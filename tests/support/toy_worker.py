"""`python -m tests.support.toy_worker worker …`: the command, with a toy in the place of the model `use`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from streams.doors.cli import main
from tests.support.toy_model import toy


def siltstone(words: Sequence[str]) -> None:
    """As if these words had been given to the command. It ends the process."""
    sys.argv = ["siltstone", *words]
    with toy():
        main()


if __name__ == "__main__":
    siltstone(sys.argv[1:])
