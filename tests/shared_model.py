"""One process with the real `use` model for all workers of a test run: to start one costs a second of a processor."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any, cast

import pytest

from schemas.settings import EmbeddingSettings
from streams.clients import embedding_process
from streams.clients.embedders import Model, model_of
from streams.clients.embedding_process import EmbeddingProcess

_real_load, _real_init = embedding_process._load, embedding_process.EmbeddingProcess.__init__


def load_once(settings: EmbeddingSettings) -> Model:
    """In the process: the model that it has, or the one of the settings."""
    held = embedding_process._in_process
    return model_of(held[0]) if held else _real_load(settings)


class Lasting:
    """A process that those who use it cannot end."""

    def __init__(self) -> None:
        self.executor = embedding_process._process(EmbeddingSettings())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.executor, name)

    def shutdown(self, **_: Any) -> None:
        """It serves others."""


@contextlib.contextmanager
def shared() -> Iterator[None]:
    """Within the block, every worker of this process that uses `use` embeds in the same one."""
    lasting = Lasting()

    def begin(self: EmbeddingProcess, settings: EmbeddingSettings) -> None:
        _real_init(self, settings)
        if settings.backend == "use":
            self._process = cast(ProcessPoolExecutor, lasting)  # the other has not started yet

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
