"""Collect numbers from all workers of the group. The worker that gets a request asks the other workers."""

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
    """The answers of all workers. `each` has the answers, and begins with the answer of this worker.

    `silent` has the URLs of the workers that gave no valid answer.
    """

    each: list[M]
    silent: list[str]


class Workers:
    """Collects numbers from all workers. `partitions` is the total number of partitions."""

    def __init__(self, forwarding: Forwarding, partitions: int) -> None:
        self._forwarding, self.partitions = forwarding, partitions

    async def tell(self, request: Request, path: str, own: Callable[[], Awaitable[M]]) -> Told[M]:
        """Return the numbers that `own` returns, and the numbers that the other workers answer at `path`.

        If another worker sent the request, return only the numbers of `own`, because that worker collects the numbers
        of all workers.
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
