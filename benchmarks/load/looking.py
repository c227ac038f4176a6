"""Polls a worker's dashboard like a browser that shows the overview, in its own process.

    python benchmarks/load/looking.py http://127.0.0.1:8000

It ends when its input closes, and then prints the number of answers.
"""

from __future__ import annotations

import sys
import threading
import time
import urllib.error
import urllib.request
from typing import Final

#: The values of `data-poll` in the overview's template.
EVERY_SECONDS: Final = {"/ui/overview/now": 2.0, "/ui/overview/charts": 5.0}


def look(base: str, closed: threading.Event) -> int:
    """Request each part at its interval; return the number of answers."""
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
                continue  # the worker starts, or recovers its tables
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
