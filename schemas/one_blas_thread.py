"""The import of this module limits BLAS and OpenMP to one thread each, in this process and its children.

Otherwise the libraries compete for the cores of a small machine: numpy, FAISS and the embedding model each start a
thread for each core, and these spin while they wait for each other. They read the environment when they are loaded,
so every entry point (`siltstone`, the tests, each benchmark) imports this before numpy. Variables that are already
set stay.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

#: The variables of all libraries with which numpy and torch may be built.
ONE_THREAD: Final[Mapping[str, str]] = MappingProxyType(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1")
)

for _name, _one in ONE_THREAD.items():
    os.environ.setdefault(_name, _one)
