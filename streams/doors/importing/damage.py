"""Unpacks ZIP and gzip files. If a file is damaged, truncated or encrypted, the error is always `NotReadable`."""

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
#: The errors that Python's libraries raise for damaged files. zipfile raises `RuntimeError` for encrypted files and
#: for unknown compression methods, and `ValueError` for invalid file names and headers.
_DAMAGE: Final = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, struct.error, RuntimeError, ValueError)


@contextlib.contextmanager
def _refused(kind: str) -> Iterator[None]:
    """Raise `NotReadable` in place of an error of unpacking. Errors of the disk are not changed."""
    try:
        yield
    except (*_DAMAGE, OSError) as exc:
        if isinstance(exc, OSError) and exc.errno is not None:  # an error of the disk: gzip and bz2 set no errno
            raise
        raise NotReadable(f"it is a damaged {kind} ({exc}): download or export it again") from exc


class _Unpacked(io.RawIOBase):
    """The unpacked content of a compressed stream. A read raises `NotReadable` if the stream is damaged."""

    def __init__(self, packed: IO[bytes] | gzip.GzipFile, kind: str) -> None:
        self._packed, self._kind = packed, kind

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any buffer, which is a memoryview here
        """Read at most as many bytes as fit into the buffer. Return their number, which is 0 at the end."""
        with _refused(self._kind):
            content = self._packed.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        """Close this stream and the compressed stream."""
        self._packed.close()
        super().close()


class Archive(zipfile.ZipFile):
    """A ZIP archive that raises `NotReadable` if it is damaged or a file in it is encrypted."""

    def __init__(self, opened: IO[bytes]) -> None:
        with _refused(_ZIP):
            super().__init__(opened)

    def read(self, name: str | zipfile.ZipInfo, pwd: bytes | None = None) -> bytes:
        """Return the content of one file of the archive."""
        with _refused(_ZIP):
            return super().read(name, pwd)

    def unpacked(self, name: str) -> io.BufferedReader:
        """Return a stream of one file of the archive, which is unpacked while it is read."""
        with _refused(_ZIP):
            return io.BufferedReader(_Unpacked(self.open(name), _ZIP))


def unzipped(opened: io.BufferedReader) -> io.BufferedReader:
    """Return a stream of the content of a gzip file. Reading it raises `NotReadable` if the file is damaged."""
    return io.BufferedReader(_Unpacked(gzip.GzipFile(fileobj=opened), "file compressed by gzip"))
