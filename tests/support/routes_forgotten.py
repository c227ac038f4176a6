"""What FastAPI remembers of the functions that it was given, which would keep every worker of a test process alive.

It keeps the kind of some thousands of them (a coroutine, a generator) in caches of the module. Routes are closures
that reach their worker; a process of a user's has one worker, one of tests has hundreds.
"""

from __future__ import annotations

from fastapi.dependencies import models


def forget_routes() -> None:
    for cached in vars(models).values():
        if clear := getattr(cached, "cache_clear", None):
            clear()
