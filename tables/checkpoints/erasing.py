"""Rules of when bytes of older generations must leave the store.

If a forget command overwrites a block, the newest generation drops it, but it stays in its pack, and the manifests of
older generations name it. So two things happen, each after a third of `erase_within`:

- a generation older than that is removed, as soon as there is a newer one;
- a pack with bytes dead for that long is left: the next take copies its live blocks into a new pack. The old pack is
  then removed with the last generation that names it.

So bytes that a take finds dead are in no object two thirds of `erase_within` later. The last third covers the time
until files are rewritten, between takes, and between expiries: the bound holds as long as these fit into it. Takes
begin to leave packs, a few at a time, once bytes have been dead for half of a third, so few have to be left at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from tables.checkpoints.manifest import Manifest, Pack

#: Shares of a generation's bytes that one take may put again early: to spread the work that will be due, and to free
#: packs that are mostly dead.
_AHEAD_SHARE: Final = 0.02
_DEAD_SHARE: Final = 0.01


def third(erase_within: timedelta) -> int:
    """A third of it, in milliseconds."""
    return int(erase_within / timedelta(milliseconds=1)) // 3


def overdue(packs: Sequence[Pack], at: int, erase_within: timedelta) -> bool:
    """True if a pack has bytes dead for so long that a take must leave it. `at`: epoch ms."""
    return any(pack.dead_since and at - pack.dead_since >= third(erase_within) for pack in packs)


def leaving(base: Manifest, at: int, erase_within: timedelta) -> set[str]:
    """The packs of a generation that the next take leaves: it puts their live blocks again."""
    left: set[str] = set()
    live = Counter[int]()
    for number, _, length in {
        (block.pack, block.offset, block.length) for file in base.files for block in file.blocks
    }:
        live[number] += length
    patience = third(erase_within)
    dead = sorted((pack.dead_since, number) for number, pack in enumerate(base.packs) if pack.dead_since)
    ahead = _AHEAD_SHARE * base.whole
    for since, number in dead:
        overdue = at - since >= patience
        if overdue or (at - since >= patience / 2 and live[number] <= ahead):
            left.add(base.packs[number].name)
            ahead -= 0 if overdue else live[number]
    room = _DEAD_SHARE * base.whole
    for _, number in sorted((live[number] / base.packs[number].length, number) for _, number in dead):
        pack = base.packs[number]
        if pack.name not in left and 2 * live[number] <= pack.length and live[number] <= room:
            left.add(pack.name)
            room -= live[number]
    return left


def superseded(generations: Sequence[Manifest], keep: int, now: int, erase_within: timedelta) -> list[Manifest]:
    """The generations to remove, of the sound ones, newest first; never the newest."""
    return [
        manifest
        for place, manifest in enumerate(generations)
        if place and (place >= keep or now - manifest.facts.at >= third(erase_within))
    ]


def may_hold(generations: Sequence[Manifest], forgotten_at: int, now: int, erase_within: timedelta) -> bool:
    """True if a partition's checkpoints may hold bytes that its files lost at `forgotten_at` (epoch ms).

    With any generation, true within `erase_within`. Later only if takes were late: one is not newer or has such bytes
    in its pages, or a pack has bytes that were dead two thirds of `erase_within` after `forgotten_at`.
    """
    if not generations:
        return False
    if now < forgotten_at + 3 * third(erase_within):
        return True
    limit = forgotten_at + 2 * third(erase_within)
    return any(
        one.facts.at <= forgotten_at or one.facts.in_pages or any(0 < pack.dead_since <= limit for pack in one.packs)
        for one in generations
    )
