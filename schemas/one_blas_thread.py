"""Importing this gives BLAS and OpenMP one thread each, in this process and its children.

The libraries of a small machine fight for cores otherwise: numpy, FAISS and the embedding model each start a thread a
core, which wait for each other by spinning. They read the environment when they are loaded, so every entry point
(`siltstone`, the tests, each benchmark) imports this before numpy. What the environment says already, holds.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

#: What says so, whichever library numpy and torch were built with.
ONE_THREAD: Final[Mapping[str, str]] = MappingProxyType(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1")
)

for _name, _one in ONE_THREAD.items():
    os.environ.setdefault(_name, _one)
