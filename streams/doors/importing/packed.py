"""Find the file to import in a gzip file or ZIP archive, because services deliver their exports in these forms."""

from __future__ import annotations

import io
import re
import zipfile
from typing import Final

from streams.doors.importing import slack
from streams.doors.importing.damage import Archive, unzipped
from streams.doors.importing.found import NotReadable

#: The names of the files to read from archives of OpenMemory, of Claude and ChatGPT, and of WhatsApp. OpenMemory's
#: archive has a second file with the same memories, but only `memories.json` names the user.
_HAS_ALL: Final = (
    re.compile(r"memories\.json"),
    re.compile(r"conversations\.json"),
    re.compile(r"_chat\.txt|WhatsApp Chat .{1,200}\.txt"),
)


def unpacked(opened: io.BufferedReader) -> io.BufferedReader | zipfile.ZipFile:
    """Return a stream of the unpacked file to import. For an export of Slack, return the open archive.

    A file that is neither gzip nor ZIP is returned unchanged. Raises `NotReadable` for a damaged archive, and for an
    archive without a file that can be imported.
    """
    begins = opened.peek(4)[:4]
    if begins[:2] == b"\x1f\x8b":
        return unzipped(opened)
    if begins != b"PK\x03\x04":
        return opened
    if not opened.seekable():
        raise NotReadable("it is a ZIP archive, which cannot be read from a pipe: pass the file, or unpack it")
    archive = Archive(opened)
    if slack.is_export(archive):
        return archive
    for pattern in _HAS_ALL:
        for name in archive.namelist():
            if pattern.fullmatch(name.rsplit("/", 1)[-1]):
                return archive.unpacked(name)
    raise NotReadable(
        "it is a ZIP archive, but not an export of Claude, ChatGPT, OpenMemory, Slack or WhatsApp: unpack it, and "
        "ingest the file with the chats"
    )
