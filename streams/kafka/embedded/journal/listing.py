"""Listings of folders for the broker. At each fetch, the broker requests the list of all batches of a partition."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from xml.sax.saxutils import escape

from streams.kafka.embedded.journal.objects import Objects


class Listings:
    """The names in each folder, as XML.

    They are cached between requests, because in most cases only new batches are added to a partition.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        #: By folder: its number of changes (`Objects.changes`), the number of cached names, and the names as XML.
        self._kept: dict[str, tuple[int, int, bytes]] = {}

    def within(self, prefix: str) -> bytes:
        """Return the XML entries of all keys with this prefix, in the order of the keys."""
        folder = prefix.removesuffix("/")
        if not prefix.endswith("/") or not self._objects.is_lowest(folder):
            return self._entries(self._objects.within(prefix))
        changes = self._objects.changes(folder)
        before, count, entries = self._kept.get(folder, (changes, 0, b""))
        if before != changes:
            count, entries = 0, b""
        added = list(self._objects.within(prefix, start=count))
        if added:
            count, entries = count + len(added), entries + self._entries(added)
            self._kept[folder] = changes, count, entries
        return entries

    def _entries(self, keys: Iterable[str]) -> bytes:
        return "".join(map(self._entry, keys)).encode()

    def _entry(self, key: str) -> str:
        place = self._objects.find(key)
        assert place is not None
        at = datetime.fromtimestamp(place.when / 1000, UTC).isoformat(timespec="milliseconds")
        return (
            f"<Contents><Key>{escape(key)}</Key><LastModified>{at}</LastModified>"
            f"<Size>{place.length}</Size></Contents>"
        )
