"""One process with the real `use` model for all workers of a test run: to start one costs a second of a processor."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from schemas.settings import EmbeddingSettings
from streams.clients import embedding_process
from streams.clients.embedders import Model, model_of

_real_load, _real_process = embedding_process._load, embedding_process._process


def load_once(settings: EmbeddingSettings) -> Model:
    """In the process: the model that it has, or the one of the settings."""
    held = embedding_process._in_process
    assert settings.backend == "use", "a test of another model is marked `own_model`"
    return model_of(held[0]) if held else _real_load(settings)


class Lasting:
    """A process that those who use it cannot end."""

    def __init__(self) -> None:
        self.executor = _real_process()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.executor, name)

    def shutdown(self, **_: Any) -> None:
        """It serves others."""


@contextlib.contextmanager
def shared() -> Iterator[None]:
    """Within the block, every worker of this process embeds in the same one."""
    lasting = Lasting()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedding_process, "_process", lambda: lasting)
        patch.setattr(embedding_process, "_load", load_once)
        try:
            yield
        finally:
            lasting.executor.shutdown(cancel_futures=True)


@contextlib.contextmanager
def of_its_own() -> Iterator[None]:
    """Within the block, each worker starts a process, as it does outside of tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedding_process, "_process", _real_process)
        patch.setattr(embedding_process, "_load", _real_load)
        yield
