"""Places partitions on workers: equal numbers on all of them, and if possible on the workers that have the state.

    placed(range(8), {"a": 0, "b": 0}, cost)       # {0: "a", 1: "b", …}, four for each

`cost` returns the cost of a partition on a worker: lowest for the partition's owner, low for a worker with the state
on its disk, and highest for a worker that has to fetch the whole state. Equal numbers are more important than costs:
a new worker takes its share from the others, which keep their remaining partitions. Equal arguments give equal
placements.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

#: The cost for a worker without the partition's state. It is higher than the cost of any number of missing records.
NOTHING: Final = 128
#: The cost for a worker that must not get a copy of the partition, because it owns the partition or already gets a
#: copy.
NEVER: Final = 1 << 20
#: Maximum number of rounds in which partitions are moved and swapped after the first placement. Two or three are
#: usual.
_ROUNDS: Final = 8

Cost = Callable[[int, str], int]


class Told(NamedTuple):
    """The report of a joining worker: the partitions that it owns, and the partitions whose state it holds.

    `held` has the offset of the state, by partition. `name` stays the same after a restart if the worker has its own
    name (`kafka.instance_id`).
    """

    name: str
    owned: Collection[int]
    held: Mapping[int, int]


def cost_of(told: Mapping[str, Told]) -> Cost:
    """Return the cost function for these workers.

    A worker's cost for a partition grows with the distance of the worker's state from the newest state.
    """
    newest: dict[int, int] = {}
    for one in told.values():
        for partition, offset in one.held.items():
            newest[partition] = max(offset, newest.get(partition, 0))

    def cost(partition: int, member: str) -> int:
        one = told[member]
        owns, held = partition in one.owned, one.held.get(partition)
        if held is None:
            return 0 if owns else NOTHING
        return 2 * (newest[partition] - held).bit_length() + (not owns)

    return cost


def placed(partitions: Sequence[int], loads: Mapping[str, int], cost: Cost) -> dict[int, str]:
    """Return the member for each partition. `loads` has, by member, the number of its other partitions."""
    members = sorted(loads)
    if not members:
        return {}
    return _Placing(members, loads, partitions, cost).result()


def warm_duties(owners: Mapping[int, str], told: Mapping[str, Told], copies: int) -> dict[str, list[int]]:
    """Return, by member, the partitions of whose state the member must keep a copy.

    Each partition gets `copies` members other than its owner, preferably members that have a copy already. The copies
    of an owner's partitions are spread over the other members. So these members have equal numbers of partitions if
    they take over the owner's partitions. Among members without a copy, rendezvous hashing decides: the member with
    the highest hash of partition and name gets the copy.
    """
    of: dict[str, list[int]] = {member: [] for member in told}
    by_owner: dict[str, list[int]] = {}
    for partition, owner in sorted(owners.items()):
        by_owner.setdefault(owner, []).append(partition)
    holders: dict[int, set[str]] = {partition: {owner} for partition, owner in owners.items()}
    rank = {
        partition: {
            member: place
            for place, member in enumerate(
                sorted(told, key=lambda one: _hash(partition, told[one].name), reverse=True)
            )
        }
        for partition in owners
    }

    def cost(partition: int, member: str) -> int:
        if member in holders[partition]:
            return NEVER
        has = partition in told[member].held
        return rank[partition][member] + (0 if has else NOTHING + len(told))

    for owner, partitions in sorted(by_owner.items()):
        others = {member: len(by_owner.get(member, [])) for member in told if member != owner}
        for _ in range(min(copies, len(others))):
            for partition, member in placed(partitions, others, cost).items():
                if member in holders[partition]:  # no member without a copy of this partition had room
                    member = min(others, key=lambda one: (cost(partition, one), others[one], one))
                others[member] += 1
                holders[partition].add(member)
                of[member].append(partition)
    return {member: sorted(partitions) for member, partitions in of.items()}


def _hash(partition: int, name: str) -> bytes:
    return blake2b(f"{partition}/{name}".encode(), digest_size=8).digest()


class _Placing:
    """Places each partition on its cheapest member that has room, and then swaps partitions if that lowers the cost.

    The first partitions to be placed are those with the greatest cost difference between their two cheapest members.
    """

    def __init__(self, members: list[str], loads: Mapping[str, int], partitions: Sequence[int], cost: Cost) -> None:
        self._cost = {partition: {member: cost(partition, member) for member in members} for partition in partitions}
        self._members = members
        least, self._more = divmod(len(partitions) + sum(loads.values()), len(members))
        self._load, self._least = dict(loads), least
        self._more -= sum(max(0, load - least) for load in loads.values())
        self._of: dict[int, str] = {}

    def result(self) -> dict[int, str]:
        for partition in sorted(self._cost, key=lambda one: (-self._regret(one), one)):
            self._put(
                partition, min(self._members, key=lambda one: (not self._has_room(one), *self._price(partition, one)))
            )
        for _ in range(_ROUNDS):
            if not sum(map(self._improved, sorted(self._of))):
                break
        return self._of

    def _regret(self, partition: int) -> int:
        best, *others = sorted(self._cost[partition].values())[:2]
        return others[0] - best if others else 0

    def _price(self, partition: int, member: str) -> tuple[int, int, str]:
        return self._cost[partition][member], self._load[member], member

    def _has_room(self, member: str) -> bool:
        load = self._load[member]
        return load < self._least or (load == self._least and self._more > 0)

    def _put(self, partition: int, member: str) -> None:
        if (before := self._of.get(partition)) is not None:
            self._load[before] -= 1
            self._more += self._load[before] >= self._least
        self._more -= self._load[member] >= self._least
        self._load[member] += 1
        self._of[partition] = member

    def _improved(self, partition: int) -> bool:
        """Move the partition to a cheaper member that has room, or swap it with a partition of a cheaper member.

        A swap must lower the sum of both costs. Returns True if the partition was moved or swapped.
        """
        here, costs = self._of[partition], self._cost[partition]
        for there in sorted(self._members, key=lambda one: (costs[one], one)):
            gain = costs[here] - costs[there]
            if gain <= 0:
                return False
            if self._load[there] < self._load[here] and (self._load[here] > self._least or self._has_room(there)):
                self._put(partition, there)
                return True
            losses = {
                other: self._cost[other][here] - self._cost[other][there]
                for other, member in self._of.items()
                if member == there
            }
            other = min(losses, key=lambda one: (losses[one], one), default=None)
            if other is not None and losses[other] < gain:
                self._of[partition], self._of[other] = there, here
                return True
        return False
