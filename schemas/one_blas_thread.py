"""Importing this gives BLAS and OpenMP one thread each, in this process and its children.

The libraries of a small machine fight for cores otherwise: numpy, FAISS and the embedding model each start a thread a
core, which wait for each other by spinning. They read the environment when they are loaded, so every entry point
(`siltstone`, the tests, each benchmark) imports this before numpy. What the environment says already, holds.
"""

from __future__ import annotations

import os

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

for _name in VARIABLES:
    os.environ.setdefault(_name, "1")
