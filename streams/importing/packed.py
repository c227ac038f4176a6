"""Files as services hand them out: compressed by gzip, or OpenMemory's ZIP, of which one file has it all."""

from __future__ import annotations

import gzip
import io
import zipfile
from typing import Final

from streams.importing.found import NotReadable

#: The file of OpenMemory's archive that also says whose memories they are.
MEMORIES: Final = "memories.json"


def unpacked(opened: io.BufferedReader) -> io.BufferedReader:
    """What is in the file. Raises `NotReadable` for other archives."""
    begins = opened.peek(4)[:4]
    if begins[:2] == b"\x1f\x8b":
        return io.BufferedReader(gzip.GzipFile(fileobj=opened))
    if begins != b"PK\x03\x04":
        return opened
    if opened.seekable():
        try:
            archive = zipfile.ZipFile(opened)
        except zipfile.BadZipFile:
            archive = None
        for name in archive.namelist() if archive is not None else ():
            if name.rsplit("/", 1)[-1] == MEMORIES and archive is not None:
                return io.BufferedReader(archive.open(name))  # type: ignore[arg-type]  # it reads as a raw file does
    raise NotReadable("it is a ZIP archive: unpack it, and ingest the conversations.json in it")
