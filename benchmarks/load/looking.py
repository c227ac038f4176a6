"""Looks at a worker's dashboard as a browser does that shows its overview; a process of its own.

    python benchmarks/load/looking.py http://127.0.0.1:8000

It ends when its input closes, and then says how often it was answered.
"""

from __future__ import annotations

import sys
import threading
import time
import urllib.error
import urllib.request
from typing import Final

#: As `data-poll` in the overview's template has it.
EVERY_SECONDS: Final = {"/ui/overview/now": 2.0, "/ui/overview/charts": 5.0}


def look(base: str, closed: threading.Event) -> int:
    """Ask each part in its time; how many answers there were."""
    due, answers = dict.fromkeys(EVERY_SECONDS, 0.0), 0
    while not closed.wait(0.05):
        for path, seconds in EVERY_SECONDS.items():
            if time.monotonic() < due[path]:
                continue
            due[path] = time.monotonic() + seconds
            try:
                with urllib.request.urlopen(f"{base}{path}", timeout=5) as answer:
                    answers += bool(answer.read())
            except (urllib.error.URLError, TimeoutError):
                continue  # it starts, or recovers its tables
    return answers


def main() -> None:
    closed = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        closed.set()

    threading.Thread(target=wait, daemon=True).start()
    sys.stdout.write(f"{look(sys.argv[1], closed)}\n")


if __name__ == "__main__":
    main()
