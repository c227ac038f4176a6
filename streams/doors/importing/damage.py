"""Packed files that are damaged, truncated or encrypted: their libraries' errors become `NotReadable`."""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Final

from streams.doors.importing.found import NotReadable

_ZIP: Final = "ZIP archive"
#: zipfile raises `RuntimeError` for encrypted files and unknown compressions, `ValueError` for names and headers.
_DAMAGE: Final = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, struct.error, RuntimeError, ValueError)


@contextlib.contextmanager
def _refused(kind: str) -> Iterator[None]:
    """Turn an error of unpacking into `NotReadable`. Errors of the disk pass through."""
    try:
        yield
    except (*_DAMAGE, OSError) as exc:
        if isinstance(exc, OSError) and exc.errno is not None:  # gzip and bz2 raise it without a number
            raise
        raise NotReadable(f"it is a damaged {kind} ({exc}): download or export it again") from exc


class _Unpacked(io.RawIOBase):
    """The content of a packed stream, of which any read raises `NotReadable` for damage."""

    def __init__(self, packed: IO[bytes] | gzip.GzipFile, kind: str) -> None:
        self._packed, self._kind = packed, kind

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any buffer, which is a memoryview here
        """Read up to as many bytes as the buffer has room for; 0 at the end."""
        with _refused(self._kind):
            content = self._packed.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        """Close the packed stream, too."""
        self._packed.close()
        super().close()


class Archive(zipfile.ZipFile):
    """A ZIP archive that raises `NotReadable` for damage, and for files that are encrypted."""

    def __init__(self, opened: IO[bytes]) -> None:
        with _refused(_ZIP):
            super().__init__(opened)

    def read(self, name: str | zipfile.ZipInfo, pwd: bytes | None = None) -> bytes:
        """The content of one file."""
        with _refused(_ZIP):
            return super().read(name, pwd)

    def unpacked(self, name: str) -> io.BufferedReader:
        """One file, read piece by piece."""
        with _refused(_ZIP):
            return io.BufferedReader(_Unpacked(self.open(name), _ZIP))


def unzipped(opened: io.BufferedReader) -> io.BufferedReader:
    """The content of a file compressed by gzip. Reading it raises `NotReadable` for damage."""
    return io.BufferedReader(_Unpacked(gzip.GzipFile(fileobj=opened), "file compressed by gzip"))
