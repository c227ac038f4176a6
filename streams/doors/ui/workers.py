"""The numbers of all workers of the group: the worker that gets a request collects them from the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from streams.doors.http.forwarding import FORWARDED, Forwarding

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Told(Generic[M]):
    """The answers of all workers. `each` has the answers, that of this worker first.

    `silent` has the URLs of the workers that gave no valid answer.
    """

    each: list[M]
    silent: list[str]


class Workers:
    """Collects numbers from all workers. `partitions`: the number of all partitions."""

    def __init__(self, forwarding: Forwarding, partitions: int) -> None:
        self._forwarding, self.partitions = forwarding, partitions

    async def tell(self, request: Request, path: str, own: Callable[[], Awaitable[M]]) -> Told[M]:
        """The numbers that `own` returns, and those that the other workers answer at `path`.

        If another worker sent the request, return only the numbers of `own`: that worker collects the others.
        """
        mine = await own()
        if FORWARDED in request.headers:
            return Told([mine], [])
        kind, each, silent = type(mine), [mine], list[str]()
        urls = self._forwarding.others()
        answers = await asyncio.gather(*(self._forwarding.ask(url, request, path) for url in urls))
        for url, answer in zip(urls, answers, strict=True):
            try:
                if answer is None or answer.status_code != 200:
                    raise ValueError
                each.append(kind.model_validate_json(answer.content))
            except (ValidationError, ValueError):
                silent.append(url)
        return Told(each, silent)
