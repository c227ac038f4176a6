"""Unpack exports as services deliver them: a file compressed with gzip, or a ZIP archive."""

from __future__ import annotations

import io
import re
import zipfile
from typing import Final

from streams.doors.importing import slack
from streams.doors.importing.damage import Archive, unzipped
from streams.doors.importing.found import NotReadable

#: The name of the file to read from an archive: of OpenMemory, of Claude and ChatGPT, of WhatsApp. The archive of
#: OpenMemory has a second file with the same memories, but only `memories.json` names the user.
_HAS_ALL: Final = (
    re.compile(r"memories\.json"),
    re.compile(r"conversations\.json"),
    re.compile(r"_chat\.txt|WhatsApp Chat .{1,200}\.txt"),
)


def unpacked(opened: io.BufferedReader) -> io.BufferedReader | zipfile.ZipFile:
    """Return the unpacked file; for Slack, the open archive. Raises `NotReadable` for unknown or damaged ones."""
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
