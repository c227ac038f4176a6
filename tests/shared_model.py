"""One process with the real `use` model for all workers of a test run: to start one costs a second of a processor."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar, TypeVarTuple, cast

import pytest

from schemas.settings import EmbeddingSettings
from streams.clients import embedding_process
from streams.clients.called_process import CalledProcess
from streams.clients.embedders import Model, model_of
from streams.clients.embedding_process import EmbeddingProcess

Given = TypeVarTuple("Given")
T = TypeVar("T")

_real_load, _real_init = embedding_process._load, embedding_process.EmbeddingProcess.__init__


def load_once(settings: EmbeddingSettings) -> Model:
    """In the process: the model that it has, or the one of the settings."""
    held = embedding_process._in_process
    return model_of(held[0]) if held else _real_load(settings)


class Lasting:
    """A `CalledProcess` for many event loops, that those who use it cannot end."""

    def __init__(self) -> None:
        self.executor = ProcessPoolExecutor(1, mp_context=get_context("spawn"))

    async def call(self, function: Callable[[*Given], T], *given: *Given) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.executor, function, *given)

    async def close(self) -> None:
        """It serves others."""


@contextlib.contextmanager
def shared() -> Iterator[None]:
    """Within the block, every worker of this process that uses `use` embeds in the same one."""
    lasting = Lasting()

    def begin(self: EmbeddingProcess, settings: EmbeddingSettings) -> None:
        _real_init(self, settings)
        if settings.backend == "use":
            self._process = cast(CalledProcess, lasting)  # the other has not started yet

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EmbeddingProcess, "__init__", begin)
        patch.setattr(embedding_process, "_load", load_once)
        try:
            yield
        finally:
            lasting.executor.shutdown(cancel_futures=True)


@contextlib.contextmanager
def of_its_own() -> Iterator[None]:
    """Within the block, each worker starts a process, as it does outside of tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EmbeddingProcess, "__init__", _real_init)
        patch.setattr(embedding_process, "_load", _real_load)
        yield
