"""The import of this module limits BLAS and OpenMP to one thread each, in this process and its children.

Otherwise numpy, FAISS and the embedding model would each start a thread for each core. On a small machine these
threads compete for the cores, and spin while they wait for each other. The libraries read the environment variables
when they are loaded, so every entry point (`siltstone`, the tests, each benchmark) imports this module before numpy.
Variables that are already set are not changed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

#: The environment variables that limit the threads of all libraries with which numpy and torch may be built.
ONE_THREAD: Final[Mapping[str, str]] = MappingProxyType(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1")
)

for _name, _one in ONE_THREAD.items():
    os.environ.setdefault(_name, _one)
