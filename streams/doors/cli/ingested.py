"""The result of `siltstone ingest` or `siltstone import`: the counts, and the texts about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from schemas.lifecycle import DAY_MS
from schemas.places import Place
from schemas.settings import LifecycleSettings
from schemas.times import iso
from streams.doors.importing.formats import Format
from streams.doors.importing.found import (
    Given,
)

#: The formats whose files have only memories and no messages.
OF_MEMORIES: Final = (Format.MEM0, Format.OPENMEMORY)


@dataclass(slots=True)
class Done:
    """The counts of the entries of an ingested file. `produced` is the number of messages and memories together.

    `newest` is the time of the newest record in epoch ms, or 0 if no record was produced.
    """

    format: Format | None = None
    produced: int = 0
    memories: int = 0
    bad: int = 0
    left_out: int = 0
    newest: int = 0
    #: The place of the last record that was produced to each topic and partition.
    last: Sequence[Place] = ()

    def counted(self) -> str:
        """Return a text with the counts, such as `2 messages and 1 memories`. A count of 0 is left out.

        If both counts are 0, the text is `0 memories` for a format with only memories, and `0 messages` otherwise.
        """
        messages, of_memories = self.produced - self.memories, self.format in OF_MEMORIES
        if not self.memories and not of_memories:
            return f"{messages} messages"
        return f"{messages} messages and {self.memories} memories" if messages else f"{self.memories} memories"

    def told(self) -> dict[str, Any]:
        return {
            "format": self.format,
            "produced": self.produced,
            "memories": self.memories,
            "bad": self.bad,
            "left_out": self.left_out,
            "newest": iso(self.newest) if self.newest else None,
        }

    def warnings(self, called: str, given: Given, lifecycle: LifecycleSettings) -> list[str]:
        """Return the warnings to show after the import.

        There is a warning if nothing could be read, or if all entries are so old that their memories may be cold.
        """
        if self.format is None and self.bad:
            return [f"nothing in {called} could be read: it must be JSON, one object a line or an array"]
        if not self.newest or lifecycle.clock != "wall":
            return []
        if given.now - self.newest <= lifecycle.fresh_days * DAY_MS:
            return []
        by_file = " (the file's own date, because it has no times: touch it)" if self.newest == given.undated else ""
        return [
            f"everything in {called} is older than the fresh period (lifecycle.fresh_days {lifecycle.fresh_days:g}), "
            f"the newest entry is of {iso(self.newest)[:10]}{by_file}. Its memories decay from the start, and many "
            "may be cold: search with --include-all, and pin memories that should stay"
        ]
