"""Rules that remove forgotten bytes from the object store within the setting `checkpoints.erase_within`.

If a forget command overwrites a block on the disk, new generations do not use the old block. But the bytes of the old
block are still in a pack, where they are called dead, and the manifests of older generations still name the block.
Two rules remove dead bytes:

- A generation is removed if it is older than a third of `erase_within` and there is a newer one.
- If a pack has had dead bytes for a third of `erase_within`, the next take replaces the pack: it uploads the pack's
  live blocks again, in a new pack. The old pack is removed together with the last generation that names it.

So bytes that a take finds dead are gone from the store two thirds of `erase_within` later. The last third is for
delays: the time until files are rewritten, the time between takes, and the time between expiries. The bytes are gone
within `erase_within` if these delays are not longer. Takes begin to replace packs earlier, a few at a time, when
bytes have been dead for a sixth of `erase_within`. So a take rarely has to replace many packs at the same time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from tables.checkpoints.manifest import Manifest, Pack

#: Limits on the bytes that a take uploads again before it must, as shares of a generation's bytes: for packs that
#: must be replaced soon, and for packs of which at least half is dead.
_AHEAD_SHARE: Final = 0.02
_DEAD_SHARE: Final = 0.01


def third(erase_within: timedelta) -> int:
    """A third of `erase_within`, in milliseconds."""
    return int(erase_within / timedelta(milliseconds=1)) // 3


def overdue(packs: Sequence[Pack], at: int, erase_within: timedelta) -> bool:
    """True if a pack has had dead bytes for so long that a take at the time `at` (epoch ms) must replace the pack."""
    return any(pack.dead_since and at - pack.dead_since >= third(erase_within) for pack in packs)


def leaving(base: Manifest, at: int, erase_within: timedelta) -> set[str]:
    """Return the names of the packs in `base` that a take at the time `at` (epoch ms) replaces."""
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
    """Return the generations that an expiry at the time `now` (epoch ms) removes.

    `generations` must be all sound generations of a partition, newest first. The newest one is never removed.
    """
    return [
        manifest
        for place, manifest in enumerate(generations)
        if place and (place >= keep or now - manifest.facts.at >= third(erase_within))
    ]


def may_hold(generations: Sequence[Manifest], forgotten_at: int, now: int, erase_within: timedelta) -> bool:
    """True if a partition's checkpoints may still have bytes that its files lost at `forgotten_at` (epoch ms).

    Within `erase_within` after that time, the result is True if there is any generation. Later, it is True only if
    rewriting, takes or expiries were late: a generation is not newer than `forgotten_at`, or its files still had
    forgotten bytes (`in_pages`), or a pack has bytes that became dead up to two thirds of `erase_within` after
    `forgotten_at`.
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
