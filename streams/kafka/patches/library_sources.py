"""Checks that an installed library has the source code for which our overrides and patches are written."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from schemas.errors import LibraryChanged


@dataclass(frozen=True, slots=True)
class LibrarySources:
    """The functions of a library that our code overrides, replaces or relies on, as `Owner.function`.

    `expected` has the first 12 hex digits of the SHA-256 of each function's source. `owners` are the classes and
    modules of the functions. `originals` are functions that a patch may have replaced on their owners.
    """

    library: str
    expected: Mapping[str, str]
    owners: Mapping[str, Any]
    originals: Mapping[str, Any] = field(default_factory=dict)

    def fingerprint(self, name: str) -> str:
        """Return the hash of the installed source of a function, or an empty text if the library does not have it."""
        owner, function = name.rsplit(".", 1)
        found = self.originals.get(name) or getattr(self.owners[owner], function, None)
        return "" if found is None else _hash_of(getattr(found, "fun", found))  # `Service.task` of Faust wraps it

    def check(self) -> None:
        """Raise `LibraryChanged` if an installed source differs from the expected one."""
        changed = [name for name, expected in self.expected.items() if self.fingerprint(name) != expected]
        if changed:
            raise LibraryChanged(
                f"{self.library} {version(self.library)} differs in {', '.join(changed)}: install the version that "
                "pyproject.toml pins"
            )


@functools.cache
def _hash_of(function: Any) -> str:
    return hashlib.sha256(inspect.getsource(function).encode()).hexdigest()[:12]
