"""One process for all workers of a test run, with the real `use` model, and which makes their summaries.

To start one costs a second of a processor.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, TypeVarTuple, cast

import pytest

from schemas.settings import EmbeddingSettings
from streams.models.embedding import process as embedding_process
from streams.models.embedding.embedders import Model, model_of
from streams.models.embedding.process import EmbeddingProcess
from streams.runtime.called_process import CalledProcess
from streams.runtime.calls import LENGTH_BYTES, answered, frame
from streams.summaries.extraction_process import ExtractionProcess
from streams.worker.wiring import summaries
from tests.support.shared_servers import accepted, connected
from tests.support.untouched import lasting

Given = TypeVarTuple("Given")
T = TypeVar("T")

_real_load, _real_init = embedding_process._load, embedding_process.EmbeddingProcess.__init__


def load_once(settings: EmbeddingSettings) -> Model:
    """In the process: the model that it has, or the one of the settings."""
    held = embedding_process._in_process
    return model_of(held[0]) if held else _real_load(settings)


class Lasting:
    """A `CalledProcess` for many event loops, that those who use it cannot end."""

    pid, gone = None, False

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._connection: socket.socket | None = None

    async def call(self, function: Callable[[*Given], T], *given: *Given) -> T:
        return await asyncio.to_thread(self._answer, frame((function, given)))

    def _answer(self, call: bytes) -> Any:
        with self._turn:
            if self._connection is None:
                with lasting():
                    self._connection = connected("model")
            self._connection.sendall(call)
            with self._connection.makefile("rb") as told:
                returned, answer = pickle.loads(told.read(int.from_bytes(told.read(LENGTH_BYTES))))
        if returned:
            return answer
        raise answer

    async def close(self) -> None:
        """It serves others."""

    def end(self) -> None:
        if self._connection is not None:
            self._connection.close()


def serve(listening: int, alive: int) -> None:
    """In the process: one call after the other, whoever calls."""
    turn = threading.Lock()
    for connection in accepted(listening, alive):
        threading.Thread(target=_serve_one, args=(connection, turn), daemon=True).start()


def _serve_one(connection: socket.socket, turn: threading.Lock) -> None:
    with connection, connection.makefile("rb") as asked, connection.makefile("wb") as told:
        while head := asked.read(LENGTH_BYTES):
            call = asked.read(int.from_bytes(head))
            with turn:
                answer = answered(call)
            told.write(answer)
            told.flush()


@contextlib.contextmanager
def shared() -> Iterator[None]:
    """Within the block, every worker of this process that uses `use` embeds in the same one, and all sum up there."""
    lasting = Lasting()

    def begin(self: EmbeddingProcess, settings: EmbeddingSettings) -> None:
        _real_init(self, settings)
        if settings.backend == "use":
            self._process = cast(CalledProcess, lasting)  # the other has not started yet

    def extraction() -> ExtractionProcess:
        made = ExtractionProcess()
        made._process = cast(CalledProcess, lasting)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summaries, "ExtractionProcess", extraction)
        patch.setattr(EmbeddingProcess, "__init__", begin)
        patch.setattr(embedding_process, "_load", load_once)
        try:
            yield
        finally:
            lasting.end()


@contextlib.contextmanager
def of_its_own() -> Iterator[None]:
    """Within the block, each worker starts a process, as it does outside of tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summaries, "ExtractionProcess", ExtractionProcess)
        patch.setattr(EmbeddingProcess, "__init__", _real_init)
        patch.setattr(embedding_process, "_load", _real_load)
        yield
