"""Tests mirror the code. Whatever imports a test comes by here, before numpy is loaded."""

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded
