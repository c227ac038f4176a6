"""`python -m tests.support.toy_worker worker …`: the command, with a toy in the place of the model `use`."""

from __future__ import annotations

from streams.cli import main
from tests.support.toy_model import toy

if __name__ == "__main__":
    with toy():
        main()
