"""Batch: computes the changes of a batch of events in memory, one event after the other. It writes nothing."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from schemas.events import (
    Archive,
    Edit,
    Expire,
    Forget,
    ForgetUser,
    Link,
    LongTermEvent,
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
from schemas.memories import STILL_HOLDS, Memory
from schemas.settings import LongTermSettings, Updates
from schemas.times import iso
from tables.memories import archiving, items, overflow, pinning
from tables.memories.applied import Applied
from tables.memories.batching import named_ids
from tables.memories.bounds import Bounds
from tables.memories.catalog.changes import NewLink, Tombstone
from tables.memories.editing import edited, reworded, said_again
from tables.memories.forgetting import forget
from tables.memories.making import as_memory
from tables.memories.near_copies import NearCopies
from tables.memories.sources import said_by_both, sources
from tables.memories.superseding import Updating, follow, supersede
from tables.memories.validity import ended_or_not_begun
from tables.memories.workspace import Workspace, Workspaces
from tables.search.held import Living
from tables.search.search_rows import SearchRows
from tables.vectors.index import VectorIndex, Vectors

#: Kinds of memories into which no near-copy is merged.
_NO_TWINS = (overflow.KIND, items.KIND)


@dataclass(slots=True)
class Batch:
    """The events of one batch (see `together`), oldest first, and the vectors of their texts by event id.

    If a user has too many memories, an event makes summaries, and the batch ends after it. Later events are computed
    after these summaries are committed. So the result does not depend on the sizes of the batches.
    """

    spaces: Workspaces
    index: VectorIndex
    settings: LongTermSettings
    events: Sequence[LongTermEvent]
    vectors: Mapping[uuid.UUID, Vectors]
    #: Count users' memories before the batch: the bounds at most, the search rows exactly.
    bounds: Bounds
    rows: SearchRows
    #: The time at which the events are applied (epoch ms).
    now: int
    updates: Updates = "rank"
    near: NearCopies = field(init=False)
    updating: Updating = field(init=False)
    tombstones: list[Tombstone] = field(init=False)
    #: By event id, the number (`seq`) of the memory row that has the event's text and vector.
    worded: dict[uuid.UUID, int] = field(default_factory=dict)
    #: By a promotion's event id, the memory ids that its exchange has without its last message, last two, and so on.
    beginnings: dict[uuid.UUID, list[uuid.UUID]] = field(init=False)
    #: By user id, the memory counts before the batch, only for users who may have too many memories.
    counts: dict[str, Living] = field(default_factory=dict)
    #: The workspace of the present event's user.
    space: Workspace = field(init=False)
    result: Applied = field(default_factory=Applied)

    def run(self) -> Applied:
        """Compute the changes of the events, in order. Stop after an event that makes summaries.

        `spaces.changes.applied` has the events whose changes were computed.
        """
        catalog, applied = self.spaces.catalog, self.spaces.changes.applied
        self.updating = Updating(self.rows)
        self.beginnings = {
            one.event_id: beginning_ids(one.user_id, one.session_id, one.message_ids)
            for one in self.events
            if isinstance(one, Promotion)
        }
        self.spaces.look_up(named_ids(self.events, self.beginnings))
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
                    if items.is_item(memory):  # an item never decays, so a pin has no effect
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
                    self.result.count(archiving.archive(self.space, memory, event))
            case Restore():
                for memory in self._of(self.space.archived, event.memory_id):
                    self.result.count(archiving.restore(self.space, memory, event.timestamp))
            case Remove():
                for memory in self._of(self.space.archived, event.memory_id):
                    self.result.count(archiving.remove(self.space, memory, event))
            case Forget():
                self._forget(event)
            case Expire():
                for memory in self._mine(event.memory_id):
                    self.result.count("expired" if items.expire(self.space, memory, event) else "spared")
            case ForgetUser():
                self._forget_all(event)

    def _keep(self, event: Promotion | Remember) -> None:
        memory = as_memory(event, self.space.next_seq)
        if self.tombstones and (self._is_forgotten(memory) or self._begins_forgotten(event)):
            self.result.forgotten += 1
            return
        if self.space.has(memory.id):
            self.result.repeated += 1
            return
        supersedes = event.supersedes if isinstance(event, Remember) else []
        twin = self._beginning(event) or self._near_copy(event, memory, supersedes)
        if twin is not None:
            self._merge(memory, twin, event)
        else:
            self._word(memory, event)
            self.result.new += 1
            self.result.born.append(memory)
        if supersedes:
            for older in self._mine(*supersedes):
                self._supersede(older.id, memory.id if twin is None else twin.id, event.timestamp, "manual")
        if self.updates == "supersede":
            self.result.superseded += self.updating.apply(self.space, memory.id, event.timestamp)
        if twin is None and self._may_be_too_many(memory.user_id):
            wholes = overflow.make_room(self.space, self.settings, event.timestamp, self._is_forgotten)
            self.result.summarized += len(wholes)
            self.result.born += wholes

    def _put(self, event: Remember) -> None:
        """Write an item. A forgotten key may be written again, because the forget command is earlier in the log.

        If the whole user was forgotten at the event's time or later, the log is being read again. Skip the item then.
        """
        assert event.memory_id is not None, "an item has a key"
        if any(one.memory_id is None and one.forgotten_at >= event.timestamp for one in self._tombstones_of(event)):
            self.result.forgotten += 1
            return
        self.result.count(items.put(self.space, event, self.vectors[event.event_id]))

    def _tombstones_of(self, event: LongTermEvent) -> Iterator[Tombstone]:
        return (one for one in self.tombstones if one.user_id == event.user_id)

    def _is_forgotten(self, memory: Memory) -> bool:
        return any(one.covers(memory.user_id, memory.id, memory.created_at) for one in self.tombstones)

    def _begins_forgotten(self, event: Promotion | Remember) -> bool:
        """Return whether a shorter version of the event's exchange was forgotten."""
        beginnings = self.beginnings.get(event.event_id, ())
        return any(one.user_id == event.user_id and one.memory_id in beginnings for one in self.tombstones)

    def _forget(self, event: Forget) -> None:
        """Forget a memory by all its ids. Even of a removed memory, the history and summaries may have words."""
        found = self._of({**self.space.archived, **self.space.known}, event.memory_id)
        if found and items.is_item(found[0]):  # no tombstone is left, so the key may be written again
            self.result.removed += forget(self.space, {event.memory_id}, event.timestamp)
            return
        identity = self.space.named(event.memory_id)
        names = self.space.names(identity) | {event.memory_id}
        for name in sorted(names):
            self._add_tombstone(Tombstone(event.user_id, name, event.timestamp))
        self.result.removed += forget(self.space, names, event.timestamp)

    def _forget_all(self, event: ForgetUser) -> None:
        """Forget all of the user's memories. Write a tombstone for those dated up to the event, for later replays.

        A memory that a wrong clock dated after the event gets its own tombstone, because a tombstone for later times
        would also cover messages that really came later. If the clock that dated the event was ahead, the user's
        tombstone reaches only up to the newest memory (see `Tombstone.as_of`).
        """
        self.space.load_all()
        held = [*self.space.archived.values(), *self.space.known.values()]
        ahead = {memory.id for memory in held if memory.created_at > event.timestamp}
        before = (tombstone.seen_at or 0 for tombstone in self._tombstones_of(event))
        newest = max((memory.created_at for memory in held if memory.id not in ahead), default=0)
        self._add_tombstone(Tombstone(event.user_id, None, event.timestamp, max(newest, *before, 0)))
        for name in sorted(ahead | self.space.said_after(event.timestamp)):
            self._add_tombstone(Tombstone(event.user_id, name, event.timestamp))
        self.result.removed += forget(self.space, {memory.id for memory in held}, event.timestamp)
        self.space.erase_all()

    def _may_be_too_many(self, user_id: str) -> bool:
        """Return whether the user may have more memories than the limit, and at least two for a summary to replace.

        An upper bound of the user's memories needs no query, but includes memories that are not current. So the
        user's current ones are counted only if the bound exceeds the limit.
        """
        limit = self.settings.max_memories_per_user
        if limit <= 0:
            return False
        if limit >= self.bounds.at_most(user_id) + self.space.added:
            return False
        before = self.counts.get(user_id)
        if before is None:
            before = self.counts[user_id] = self.rows.living(user_id)
        current, loose = self.space.more
        return limit < before.current + current and before.loose + loose > 1

    def _near_copy(
        self, event: Promotion | Remember, memory: Memory, supersedes: Sequence[uuid.UUID]
    ) -> Memory | None:
        """Return the first of the user's memories, stored or of this batch, that says the same as the event.

        `memory` is the memory that the event would create. One with a time of validity is a memory of its own, and
        none is merged into one that by its user's word did not hold when it was said.

        A cosine alone is not enough: texts with other numbers or names have nearly the same vector. Skipped are:
        memories that are not current, memories that the event supersedes, items, and summaries (they have their own
        sources).
        """
        if not self.near.any_of(event) or (memory.valid_from, memory.valid_to) != (None, None):
            return None
        new = self.space.changes.new
        fresh = (new.get(self.worded[earlier]) for earlier in self.near.earlier(event) if earlier in self.worded)
        for near in (*self.near.stored(event), *fresh):
            twin = self.space.as_it_is_now(near)
            if twin is None or not twin.current or twin.kind in _NO_TWINS or twin.id in supersedes:
                continue
            if ended_or_not_begun(twin, memory.created_at):
                continue
            if self.near.says_the_same(event, twin):
                return twin
        return None

    def _beginning(self, event: Promotion | Remember) -> Memory | None:
        """Return the memory of a shorter version of the event's exchange, from an earlier export; None if none."""
        for identity in self.beginnings.get(event.event_id, ()):
            memory = self.space.known.get(self.space.named(identity))
            if memory is not None and memory.current and memory.kind == "exchange":
                return memory
        return None

    def _word(self, memory: Memory, event: Promotion | Remember) -> None:
        """Add a row with the event's text and vector."""
        self.space.add(memory, self.vectors[event.event_id])
        if self.near:
            self.worded[event.event_id] = memory.seq

    def _merge(self, memory: Memory, twin: Memory, event: Promotion | Remember) -> None:
        """Merge the near-copy `memory` into `twin`: add its sources, and raise importance and `last_accessed`.

        The text that is dated later is kept; the other text goes into the history. If the user asked to remember the
        near-copy, the twin is pinned, even if it was unpinned before.
        """
        at = event.timestamp
        importance = max(twin.importance, memory.importance) + self.settings.access_increment
        after = replace(
            said_again(said_by_both(pinning.pinned_by_request(twin) if memory.pinned else twin, memory), memory),
            importance=min(100.0, importance),
            last_accessed=max(twin.last_accessed, at),
            message_ids=sources(twin.message_ids, memory.message_ids),
        )
        wording: dict[str, Any] = {}
        if memory.text == twin.text:
            self.space.change(after)
        elif memory.created_at < twin.created_at:  # the event is older than the twin, but read later
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
        """Count accesses. If several ids stand for one memory (its own, a near-copy's), the highest number counts."""
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
            # The row gets a new number. Otherwise outdated index files could give the old vector for the new text.
            after = replace(after, seq=self.space.next_seq)
            self.space.add(after, self.vectors[event.event_id])
        if after.valid_from != memory.valid_from:
            follow(self.space, after)
        self.space.note(memory, event.timestamp, "edited", reason=event.reason, before=before)
        if "refused" in before:
            self.result.refused += 1
        else:
            self.result.edited += 1
        if (event.metadata or {}).get(STILL_HOLDS) is True and after.still_holds:
            self.result.reinstated += 1
        if event.text is not None and self.updates == "supersede":
            self.result.superseded += self.updating.apply(self.space, memory.id, event.timestamp)

    def _supersede(self, older_id: uuid.UUID, newer_id: uuid.UUID, at: int, reason: str) -> None:
        self.result.superseded += supersede(self.space, older_id, newer_id, at, reason)

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
        """Return the ids under which two memories are stored; None if one is missing, or both are the same."""
        found = self._mine(one, other)
        return (found[0].id, found[1].id) if len(found) == 2 else None

    def _add_tombstone(self, tombstone: Tombstone) -> None:
        self.tombstones.append(tombstone.as_of(self.now))
        self.space.changes.tombstones.append(tombstone)
