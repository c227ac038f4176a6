"""Local models of the sentence-transformers library: how they are loaded, and the processes that they live in."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from schemas.errors import SiltstoneError
from schemas.one_blas_thread import ONE_THREAD
from streams.runtime.called_process import CalledProcess


def model_process(name: str, kept: Mapping[str, str] = os.environ) -> CalledProcess:
    """Return a process with this name that computes with one thread, unless the variables `kept` say otherwise.

    More threads would use processor time even while they wait, and would slow down a busy machine.
    """
    return CalledProcess(name, {key: value for key, value in ONE_THREAD.items() if key not in kept})


def silence() -> None:
    """Discard the output of this process from now on: Python packages of models print many lines while they load."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for output in (1, 2):
        os.dup2(nowhere, output)


def library_model(kind: Literal["SentenceTransformer", "CrossEncoder"], model: str, section: str) -> Any:
    """Load a model of the library, given by its name on the model hub or by its folder.

    `section` is the section of the settings that names the model. Raises `SiltstoneError`, which says what to do.
    """
    folder = Path(model).expanduser()
    if not folder.is_dir() and (folder.is_absolute() or model.startswith((".", "~"))):
        raise SiltstoneError(
            f"sentence-transformers cannot load {section}.model: there is no folder {model}; correct its path"
        )
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    try:
        import sentence_transformers
        from transformers.utils.logging import disable_progress_bar
    except ImportError as exc:
        raise SiltstoneError(
            f"{section}.backend is `sentence-transformers`, but its package is missing: "
            "pip install 'siltstone[sentence-transformers]'"
        ) from exc
    disable_progress_bar()  # hides the progress bar of loading; a download still shows one
    try:
        return getattr(sentence_transformers, kind)(str(folder) if folder.is_dir() else model)
    except Exception as exc:
        raise SiltstoneError(
            f"sentence-transformers cannot load {section}.model {model} ({type(exc).__name__}): correct it, give "
            "this machine access to the model hub or put the model into its cache, or set the model's folder"
        ) from exc
