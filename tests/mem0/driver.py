"""Runs in the environment that has `mem0ai`: calls methods of the real client as it is told, a line each.

It reads `["add", [args], {kwargs}]`, and writes `{"result": …}` or `{"error": class, "message": …}`. Nothing of ours
is imported.
"""

from __future__ import annotations

import json
import logging
import sys


def main(host: str, api_key: str) -> None:
    from mem0 import MemoryClient

    logging.disable(logging.CRITICAL)  # the client logs each refusal
    client = None
    for line in sys.stdin:
        method, args, kwargs = json.loads(line)
        try:
            client = client or MemoryClient(host=host, api_key=api_key)
            answer = {"result": None if method == "made" else getattr(client, method)(*args, **kwargs)}
        except Exception as exc:
            answer = {"error": type(exc).__name__, "message": str(exc)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
