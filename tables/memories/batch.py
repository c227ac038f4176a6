"""Batch: computes what a batch of events changes, one event after the other, before anything is written."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from schemas.events import (
    Archive,
    Edit,
    Expire,
    Forget,
    ForgetUser,
    Link,
    LongTermEvent,
    Parts,
    Pin,
    Promotion,
    Remember,
    Remove,
    Restore,
    Supersede,
    Touch,
    Unlink,
    Unpin,
)
from schemas.ids import beginning_ids
from schemas.lifecycle import score_of, state_of
from schemas.memories import Memory, State
from schemas.settings import LongTermSettings
from schemas.sources import SOURCES
from schemas.times import iso
from tables.memories import items, overflow, pinning
from tables.memories.catalog.changes import NewLink, Tombstone
from tables.memories.catalog.erasing import Named
from tables.memories.editing import edited, reworded
from tables.memories.forgetting import forget
from tables.memories.near_copies import NearCopies
from tables.memories.sources import said_by_both, sources
from tables.memories.workspace import Workspace, Workspaces
from tables.search.search_rows import Living
from tables.vectors.index import Vectors, cell_of
from tables.vectors.segmented import SegmentedIndex

#: Kinds of memories into which no near-copy is merged.
_NO_TWINS = (overflow.KIND, items.KIND)

_parts = attrgetter(*Parts.__slots__)


@dataclass(slots=True)
class Applied:
    """The effects of events as counts, the events that were not applied before, and the new memories."""

    new: int = 0
    merged: int = 0
    touched: int = 0
    edited: int = 0
    superseded: int = 0
    summarized: int = 0
    archived: int = 0
    restored: int = 0
    removed: int = 0
    expired: int = 0
    repeated: int = 0
    forgotten: int = 0
    unknown: int = 0
    spared: int = 0
    refused: int = 0
    fresh: list[LongTermEvent] = field(default_factory=list, compare=False)
    born: list[Memory] = field(default_factory=list, compare=False)

    def effects(self) -> dict[str, int]:
        """The counts by name, without zeros."""
        counts = {name: getattr(self, name) for name in self.__slots__ if name not in ("fresh", "born")}
        return {name: count for name, count in counts.items() if count}

    def add(self, other: Applied) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def together(events: Sequence[LongTermEvent]) -> Sequence[LongTermEvent]:
    """Return the leading events that fit into one batch. An event that gives a memory another vector is alone.

    Near-copies of later texts can be found only after it is committed. Two users' events with the same id are in
    different batches.
    """
    ids = {event.event_id for event in events}
    if len(ids) == len(events) and not any(isinstance(event, Restore | Edit) for event in events):
        return events
    ids.clear()
    for place, event in enumerate(events):
        if isinstance(event, Restore) or (isinstance(event, Edit) and event.text is not None):
            return events[: place or 1]
        if event.event_id in ids:
            return events[:place]
        ids.add(event.event_id)
    return events


@dataclass(slots=True)
class Batch:
    """Events that go `together`, oldest first, with the vectors of their texts by event id.

    It ends early if a user has too many memories: later events are computed after the summaries are committed. So the
    result does not depend on where batches are cut.
    """

    spaces: Workspaces
    index: SegmentedIndex
    settings: LongTermSettings
    events: Sequence[LongTermEvent]
    vectors: Mapping[uuid.UUID, Vectors]
    #: Counts a user's memories before the batch; the count may be too high, never too low.
    living: Callable[[str], Living]
    #: When the events are applied (epoch ms).
    now: int
    near: NearCopies = field(init=False)
    tombstones: list[Tombstone] = field(init=False)
    #: By event id, the number of the memory that has the event's text and vector.
    worded: dict[uuid.UUID, int] = field(default_factory=dict)
    #: By a promotion's event id, the memory ids of shorter beginnings of its exchange, longest first.
    beginnings: dict[uuid.UUID, list[uuid.UUID]] = field(init=False)
    #: How many vectors lay in a user's cell before the batch.
    sizes: dict[str, int] = field(default_factory=dict)
    #: Counts before the batch, for users who may have too many memories.
    counts: dict[str, Living] = field(default_factory=dict)
    #: The workspace of the present event's user.
    space: Workspace = field(init=False)
    result: Applied = field(default_factory=Applied)

    def run(self) -> Applied:
        """Compute the changes of the events, up to one that must be committed before the next.

        `spaces.changes.applied` names the events that are done.
        """
        catalog, applied = self.spaces.catalog, self.spaces.changes.applied
        self.beginnings = {
            one.event_id: beginning_ids(one.user_id, one.session_id, one.message_ids)
            for one in self.events
            if isinstance(one, Promotion)
        }
        self.spaces.look_up(_named_ids(self.events, self.beginnings))
        tombstones = catalog.tombstones({event.user_id for event in self.events})
        self.tombstones = [tombstone.as_of(self.now) for tombstone in tombstones]
        texts = [
            event
            for event in self.events
            if isinstance(event, Promotion) or (isinstance(event, Remember) and not items.is_put(event))
        ]
        self.near = NearCopies(texts, self.vectors, self.index, catalog, self.settings.near_copy)
        for event in self.events:
            self.space = self.spaces[event.user_id]
            applied.append((event.user_id, event.event_id))
            self._apply(event)
            if self.result.summarized:
                break
        return self.result

    def _apply(self, event: LongTermEvent) -> None:
        match event:
            case Remember() if items.is_put(event):
                self._put(event)
            case Promotion() | Remember():
                self._keep(event)
            case Touch():
                self._touch(event)
            case Pin() | Unpin():
                for memory in self._mine(event.memory_id):
                    if items.is_item(memory):  # an item never decays
                        continue
                    self.space.change(pinning.pinned_by_command(memory, isinstance(event, Pin)))
                    self.space.note(memory, event.timestamp, f"{event.type}ned")
            case Link():
                if pair := self._pair(event.source_id, event.target_id):
                    self.space.link(NewLink(event.user_id, *pair, event.kind, event.weight, event.timestamp))
            case Unlink():
                if pair := self._pair(event.source_id, event.target_id):
                    self.space.unlink(*pair, event.kind)
            case Edit():
                for memory in self._mine(event.memory_id):
                    self._edit(memory, event)
            case Supersede():
                if pair := self._pair(event.memory_id, event.by):
                    self._supersede(*pair, event.timestamp, event.reason)
            case Archive():
                for memory in self._mine(event.memory_id):
                    self._archive(memory, event)
            case Restore():
                for memory in self._of(self.space.archived, event.memory_id):
                    self._restore(memory, event.timestamp)
            case Remove():
                for memory in self._of(self.space.archived, event.memory_id):
                    self._remove(memory, event)
            case Forget():
                self._forget(event)
            case Expire():
                for memory in self._mine(event.memory_id):
                    self._expire(memory, event)
            case ForgetUser():
                self._forget_all(event)

    def _keep(self, event: Promotion | Remember) -> None:
        memory = self._as_memory(event)
        if self.tombstones and (self._is_forgotten(memory) or self._begins_forgotten(event)):
            self.result.forgotten += 1
            return
        if self.space.has(memory.id):
            self.result.repeated += 1
            return
        supersedes = event.supersedes if isinstance(event, Remember) else []
        twin = self._beginning(event) or self._near_copy(event, supersedes)
        if twin is not None:
            self._merge(memory, twin, event)
        else:
            self._word(memory, event)
            self.result.new += 1
            self.result.born.append(memory)
        if supersedes:
            for older in self._mine(*supersedes):
                self._supersede(older.id, memory.id if twin is None else twin.id, event.timestamp, "manual")
        if twin is None and self._may_be_too_many(memory.user_id):
            wholes = overflow.make_room(self.space, self.settings, event.timestamp, self._is_forgotten)
            self.result.summarized += len(wholes)
            self.result.born += wholes

    def _put(self, event: Remember) -> None:
        """Write an item. The order of the log decides, not a clock: a forgotten key may be written again.

        Only a tombstone of the whole user that is not older than the event prevents it: then the log is read again.
        """
        assert event.memory_id is not None, "an item has a key"
        if any(one.memory_id is None and one.forgotten_at >= event.timestamp for one in self._tombstones_of(event)):
            self.result.forgotten += 1
            return
        effect = items.put(self.space, event, self.vectors[event.event_id])
        setattr(self.result, effect, getattr(self.result, effect) + 1)

    def _tombstones_of(self, event: LongTermEvent) -> Iterator[Tombstone]:
        return (one for one in self.tombstones if one.user_id == event.user_id)

    def _expire(self, memory: Memory, event: Expire) -> None:
        if items.expire(self.space, memory, event):
            self.result.expired += 1
        else:
            self.result.spared += 1

    def _is_forgotten(self, memory: Memory) -> bool:
        return any(covers(tombstone, memory.user_id, memory.id, memory.created_at) for tombstone in self.tombstones)

    def _begins_forgotten(self, event: Promotion | Remember) -> bool:
        """Whether the event's exchange begins with a whole exchange that was forgotten."""
        beginnings = self.beginnings.get(event.event_id, ())
        return any(one.user_id == event.user_id and one.memory_id in beginnings for one in self.tombstones)

    def _forget(self, event: Forget) -> None:
        """Forget a memory under all its ids, also one removed before: its history and summaries keep its words."""
        found = self._of({**self.space.archived, **self.space.known}, event.memory_id)
        if found and items.is_item(found[0]):  # its key may be written again, so no tombstone is left
            self.result.removed += forget(self.space, {event.memory_id}, event.timestamp)
            return
        identity = self.space.named(event.memory_id)
        names = self.space.names(identity) | {event.memory_id}
        for name in sorted(names):
            self._bury(Tombstone(event.user_id, name, event.timestamp))
        self.result.removed += forget(self.space, names, event.timestamp)

    def _forget_all(self, event: ForgetUser) -> None:
        """Forget all of the user's memories; when the log is read again, all that are dated up to the event.

        Memories that are dated later, by a clock that was ahead, get tombstones of their own: later messages may be
        kept. If the clock that dated the event was ahead, the tombstone reaches only up to the newest memory
        (`Tombstone.as_of`).
        """
        self.space.load_all()
        held = [*self.space.archived.values(), *self.space.known.values()]
        ahead = {memory.id for memory in held if memory.created_at > event.timestamp}
        before = (tombstone.seen_at or 0 for tombstone in self._tombstones_of(event))
        newest = max((memory.created_at for memory in held if memory.id not in ahead), default=0)
        self._bury(Tombstone(event.user_id, None, event.timestamp, max(newest, *before, 0)))
        for name in sorted(ahead | self.space.said_after(event.timestamp)):
            self._bury(Tombstone(event.user_id, name, event.timestamp))
        self.result.removed += forget(self.space, {memory.id for memory in held}, event.timestamp)
        self.space.erase_all()

    def _may_be_too_many(self, user_id: str) -> bool:
        """Whether the user may have more memories than the limit, at least two of which can go into a summary.

        The index knows the size of the user's cell at once, but it counts all users of the cell and memories that are
        not current. Only if that size exceeds the limit are the user's rows counted.
        """
        limit = self.settings.max_memories_per_user
        if limit <= 0:
            return False
        size = self.sizes.get(user_id)
        if size is None:
            size = self.sizes[user_id] = self.index.size_of(cell_of(user_id))
        if limit >= size + self.space.added:
            return False
        before = self.counts.get(user_id)
        if before is None:
            before = self.counts[user_id] = self.living(user_id)
        current, loose = self.space.more
        return limit < before.current + current and before.loose + loose > 1

    def _as_memory(self, event: Promotion | Remember) -> Memory:
        meta = dict(event.metadata or {})
        if SOURCES in meta:  # only `event.sources` counts
            meta = {key: value for key, value in meta.items() if key != SOURCES}
        if event.sources:
            meta[SOURCES] = event.sources
        if isinstance(event, Promotion):
            meta["promotion"] = dict(zip(Parts.__slots__, _parts(event.parts), strict=True))
            if event.pinned:
                meta["promotion"][pinning.MARK] = True
            if event.speakers:
                meta["speakers"] = event.speakers
            identity, kind, message_ids = event.memory_id, "exchange", tuple(event.message_ids)
            created = event.started_at
        else:
            identity, kind, message_ids = event.memory_id or event.event_id, event.origin, tuple(event.message_ids)
            created = event.timestamp if event.created_at is None else event.created_at
        return Memory(
            seq=self.space.next_seq,
            id=identity,
            user_id=event.user_id,
            session_id=event.session_id,
            agent_id=event.agent_id,
            text=event.text,
            kind=kind,
            message_ids=message_ids,
            importance=event.importance,
            created_at=created,
            last_accessed=event.timestamp,
            access_count=0,
            state=State.ACTIVE,
            pinned=isinstance(event, Promotion) and event.pinned,
            meta=meta,
        )

    def _near_copy(self, event: Promotion | Remember, supersedes: Sequence[uuid.UUID]) -> Memory | None:
        """Return the first of the user's memories, stored or of this batch, that says the same as the event.

        A cosine alone is not enough: texts with other numbers or names have nearly the same vector. Memories that are
        not current are skipped, and those that the event supersedes; so are items, and summaries, which have sources
        of their own.
        """
        if not self.near.any_of(event):
            return None
        new = self.space.changes.new
        fresh = (new.get(self.worded[earlier]) for earlier in self.near.earlier(event) if earlier in self.worded)
        for near in (*self.near.stored(event), *fresh):
            twin = self._as_it_is_now(near)
            if twin is None or not twin.current or twin.kind in _NO_TWINS or twin.id in supersedes:
                continue
            if self.near.says_the_same(event, twin):
                return twin
        return None

    def _beginning(self, event: Promotion | Remember) -> Memory | None:
        """Return the memory of an exchange with which this one begins: a longer export repeats and extends it."""
        for identity in self.beginnings.get(event.event_id, ()):
            memory = self.space.known.get(self.space.named(identity))
            if memory is not None and memory.current and memory.kind == "exchange":
                return memory
        return None

    def _as_it_is_now(self, memory: Memory | None) -> Memory | None:
        """Return the memory as the batch has changed it; None if it was removed, or its text and vector changed."""
        if memory is None or memory.id in self.space.gone:
            return None
        now = self.space.known.get(memory.id, memory)
        return now if now.seq == memory.seq else None

    def _word(self, memory: Memory, event: Promotion | Remember) -> None:
        """Add a row with the event's text and vector."""
        self.space.add(memory, self.vectors[event.event_id])
        if self.near:
            self.worded[event.event_id] = memory.seq

    def _merge(self, memory: Memory, twin: Memory, event: Promotion | Remember) -> None:
        """Merge the near-copy `memory` into `twin`: add its sources, and raise importance and `last_accessed`.

        The text that is dated later is kept; the history has the other one. If the user asked to remember the
        near-copy, the memory is pinned, even if it was unpinned before.
        """
        at = event.timestamp
        importance = max(twin.importance, memory.importance) + self.settings.access_increment
        after = replace(
            said_by_both(pinning.pinned_by_request(twin) if memory.pinned else twin, memory),
            importance=min(100.0, importance),
            last_accessed=max(twin.last_accessed, at),
            message_ids=sources(twin.message_ids, memory.message_ids),
        )
        wording: dict[str, Any] = {}
        if memory.text == twin.text:
            self.space.change(after)
        elif memory.created_at < twin.created_at:  # the event is older, and read later
            wording["text"] = memory.text
            self.space.change(after)
        else:
            wording["before"] = {"text": twin.text}
            self.space.drop(twin)
            self._word(replace(reworded(after, memory), seq=self.space.next_seq), event)
        self.space.merge(memory, twin)
        self.space.note(
            twin,
            at,
            "merged",
            memory_id=memory.id,
            session_id=memory.session_id,
            message_ids=memory.message_ids,
            said_at=iso(memory.created_at),
            importance=twin.importance,
            **wording,
        )
        if memory.pinned and not twin.pinned:
            self.space.note(twin, at, "pinned")
        self.result.merged += 1

    def _touch(self, event: Touch) -> None:
        """Count accesses. If several ids name one memory, such as a near-copy's, the highest number counts."""
        times = dict[uuid.UUID, int]()
        for identity, number in zip(event.memory_ids, event.times, strict=False):
            named = self.space.named(identity)
            times[named] = max(number, times.get(named, 1))
        for memory in self._mine(*event.memory_ids):
            number = times.get(memory.id, 1)
            self.space.change(self._accessed(memory, event.timestamp, number))
            self.result.touched += number

    def _accessed(self, memory: Memory, at: int, times: int) -> Memory:
        return items.renewed(
            replace(
                memory,
                importance=min(100.0, memory.importance + self.settings.access_increment * times),
                last_accessed=max(memory.last_accessed, at),
                access_count=memory.access_count + times,
            )
        )

    def _edit(self, memory: Memory, event: Edit) -> None:
        after, before = edited(memory, event)
        if event.text is None:
            self.space.change(after)
        else:
            self.space.drop(memory)
            self._renumber(after, self.vectors[event.event_id])
        self.space.note(memory, event.timestamp, "edited", reason=event.reason, before=before)
        if "refused" in before:
            self.result.refused += 1
        else:
            self.result.edited += 1

    def _renumber(self, memory: Memory, vector: Vectors) -> None:
        """Add the memory under a new number: outdated files then cannot mistake its old vector for the new one."""
        self.space.add(replace(memory, seq=self.space.next_seq), vector)

    def _supersede(self, older_id: uuid.UUID, newer_id: uuid.UUID, at: int, reason: str) -> None:
        """Supersede a memory. The newer one becomes current, even if it was superseded: so no cycle can arise."""
        older, newer = self.space.known[older_id], self.space.known[newer_id]
        if older_id == newer_id or older.superseded_by == newer_id:
            return
        self.space.change(replace(older, superseded_by=newer_id))
        self.space.change(replace(newer, superseded_by=None))
        self.space.note(older, at, "superseded", by=newer_id, reason=reason)
        self.space.note(newer, at, "supersedes", memory_id=older_id, reason=reason)
        self.result.superseded += 1

    def _archive(self, memory: Memory, event: Archive) -> None:
        if self._spared(memory, event):
            return
        at, state = event.timestamp, memory.state
        moved = replace(memory, meta=self.space.with_transition(memory, state, "archived", at))
        self.space.archive(moved, at, event.reason)
        self.space.move(memory, state, "archived", at, event.reason)
        self.result.archived += 1

    def _remove(self, memory: Memory, event: Remove) -> None:
        if self._spared(memory, event):
            return
        self.space.unarchive(memory)
        self.space.move(memory, "archived", "removed", event.timestamp, event.reason)
        self.result.removed += 1

    def _spared(self, memory: Memory, event: Archive | Remove) -> bool:
        """Whether the event was decided on before the memory was pinned, accessed or restored."""
        decided_on = event.last_accessed
        spared = decided_on is not None and (memory.pinned or memory.last_accessed > decided_on)
        self.result.spared += spared
        return spared

    def _restore(self, memory: Memory, at: int) -> None:
        """Restore an archived memory, accessed now: otherwise the next cleanup would archive it again."""
        vector = self.space.catalog.archive.vectors([memory.seq])[0]
        back = replace(memory, last_accessed=max(memory.last_accessed, at))
        lifecycle = self.space.lifecycle
        state = state_of(score_of(back, at, lifecycle), lifecycle)
        back = replace(back, state=state, meta=self.space.with_transition(back, "archived", state, at))
        self.space.unarchive(memory)
        self._renumber(back, vector)
        self.space.move(back, "archived", state, at, "restore")
        self.result.restored += 1

    def _mine(self, *ids: uuid.UUID) -> list[Memory]:
        """Return the user's memories with these ids; other users' ids count as unknown."""
        return self._of(self.space.known, *ids)

    def _of(self, held: Mapping[uuid.UUID, Memory], *ids: uuid.UUID) -> list[Memory]:
        found = {}
        for identity in ids:
            memory = held.get(self.space.named(identity))
            if memory is None:
                self.result.unknown += 1
            else:
                found[memory.id] = memory
        return list(found.values())

    def _pair(self, one: uuid.UUID, other: uuid.UUID) -> tuple[uuid.UUID, uuid.UUID] | None:
        """Return both memories' ids; None if one is missing, or both are the same memory."""
        found = self._mine(one, other)
        return (found[0].id, found[1].id) if len(found) == 2 else None

    def _bury(self, tombstone: Tombstone) -> None:
        self.tombstones.append(tombstone.as_of(self.now))
        self.space.changes.tombstones.append(tombstone)


def covers(tombstone: Tombstone, user_id: str, memory_id: uuid.UUID, created_at: int) -> bool:
    """Whether the memory is forgotten by this tombstone."""
    return tombstone.user_id == user_id and (
        tombstone.memory_id == memory_id or (tombstone.memory_id is None and created_at <= tombstone.forgotten_at)
    )


def _named_ids(events: Sequence[LongTermEvent], beginnings: Mapping[uuid.UUID, Sequence[uuid.UUID]]) -> set[Named]:
    """Return the memories that the events name."""
    named: set[Named] = set()
    for event in events:
        if isinstance(event, Promotion):  # most are
            named.add((event.user_id, event.memory_id))
            named.update([(event.user_id, identity) for identity in beginnings[event.event_id]])
            continue
        match event:
            case Touch():
                ids = event.memory_ids
            case Link() | Unlink():
                ids = [event.source_id, event.target_id]
            case Remember():
                ids = [event.memory_id or event.event_id, *event.supersedes]
            case Supersede():
                ids = [event.memory_id, event.by]
            case ForgetUser():
                continue
            case _:
                named.add((event.user_id, event.memory_id))
                continue
        named.update((event.user_id, identity) for identity in ids)
    return named
