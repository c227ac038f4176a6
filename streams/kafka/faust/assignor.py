"""Assigns partitions to the workers of the group: Faust's assignor with another placement rule.

Faust leaves a partition at its last owner. A worker that returns after a restart owns no partition, although its disk
has the state of its former partitions. With Faust's rule, the other workers may keep these partitions, and give the
returned worker partitions whose state is on their own disks. So each worker also reports the partitions whose state
it holds, each with an offset. The group's leader places partitions by these reports (`placing`). The leader also
decides which other workers keep copies of each partition's state.

Workers send Faust's messages with additional fields. Workers of earlier versions ignore these fields, and do not send
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from faust.assignor.client_assignment import ClientAssignment, ClientMetadata, CopartitionedAssignment
from faust.assignor.partition_assignor import PartitionAssignor

from streams.kafka.faust.placing import Told, cost_of, placed, warm_duties


class Metadata(ClientMetadata, serializer="json", include_metadata=False, namespace="@ClientMetadata"):
    """The metadata that a worker and the group's leader exchange, with fields that Faust does not have.

    A joining worker reports its `name` and `held`, which has the offset of the worker's state by partition. The
    leader's assignment for a worker has `warm`, the partitions of which the worker must keep copies.
    """

    held: Mapping[str, int] = cast(Mapping[str, int], None)
    name: str = ""
    warm: list[int] = cast(list[int], None)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.held, self.warm = self.held or {}, self.warm or []


class HeldState:
    """The state that this worker reports, and a callback for the copies of partitions that it must keep.

    `copies` is the number of copies of each partition, besides the state of its owner. `held` returns the offset of
    this worker's state by partition. It is called on the thread of Faust's consumer.
    """

    def __init__(self, name: str = "", copies: int = 0) -> None:
        self.name, self.copies = name, copies
        self.held: Callable[[], Mapping[int, int]] = dict
        #: Called at each assignment with the partitions of which this worker must keep copies.
        self.on_duties: Callable[[frozenset[int]], None] = lambda partitions: None


class HeldAssignor(PartitionAssignor):
    """The assignor of an app. `HotPath` installs it, and sets `state`."""

    state = HeldState()

    @property
    def _metadata(self) -> Metadata:
        """The report that this worker sends when it joins the group: Faust's fields, `held` and `name`."""
        told = super()._metadata
        return self._more(
            told,
            held={str(partition): offset for partition, offset in self.state.held().items()},
            name=self.state.name,
        )

    @staticmethod
    def _more(told: ClientMetadata, **more: Any) -> Metadata:
        return Metadata(
            assignment=told.assignment,
            url=told.url,
            changelog_distribution=told.changelog_distribution,
            external_topic_distribution=told.external_topic_distribution,
            topic_groups=told.topic_groups,
            **more,
        )

    @classmethod
    def _get_client_metadata(cls, metadata: Any) -> Metadata:
        """Decode a member's report with its additional fields, which Faust's own class would drop."""
        return cast(Metadata, Metadata.loads(metadata.user_data))

    def on_assignment(self, assignment: Any) -> None:
        """Take over an assignment as Faust does, even if it has a former address of this worker.

        A worker that returns with its `kafka.instance_id` gets its former assignment, even if it has a new address.
        Faust would raise an `AssertionError`.
        """
        told = cast(Metadata, Metadata.loads(self._decompress(assignment.user_data)))
        self._assignment = told.assignment
        self._topic_groups = dict(told.topic_groups)
        self._active_tps, self._standby_tps = told.assignment.active_tps, told.assignment.standby_tps
        self.changelog_distribution = _moved(told.changelog_distribution, told.url, str(self._url))
        self.external_topic_distribution = _moved(told.external_topic_distribution, told.url, str(self._url))
        self.state.on_duties(frozenset(told.warm))

    def _perform_assignment(self, cluster: Any, member_metadata: Mapping[str, Any]) -> Any:
        """Assign partitions to the members that hold their state, as far as possible.

        Faust's rule uses only the last owner of each partition.
        """
        told = {member: self._get_client_metadata(metadata) for member, metadata in member_metadata.items()}
        subscriptions = {member: list(metadata.subscription) for member, metadata in member_metadata.items()}
        topics = {topic for subscribed in subscriptions.values() for topic in subscribed}
        self._update_member_urls(told)
        assignments = {member: ClientAssignment(actives={}, standbys={}) for member in told}
        group_of: dict[str, int] = {}
        warm: dict[str, set[int]] = {member: set() for member in told}
        copartitioned = self._get_copartitioned_groups(topics, cluster, subscriptions)
        for number, (partitions, groups) in enumerate(sorted(copartitioned.items())):
            for group in groups:
                takers = {
                    member: Told(
                        one.name or one.url,
                        one.assignment.copartitioned_assignment(group).actives,
                        {int(partition): offset for partition, offset in one.held.items()},
                    )
                    for member, one in told.items()
                    if group.issubset(subscriptions[member])
                }
                owners = placed(range(partitions), dict.fromkeys(takers, 0), cost_of(takers))
                for member, duties in warm_duties(owners, takers, self.state.copies).items():
                    warm[member].update(duties)
                for member in takers:
                    ours = {partition for partition, owner in owners.items() if owner == member}
                    assignments[member].add_copartitioned_assignment(CopartitionedAssignment(ours, set(), group))
                group_of |= dict.fromkeys(group, number)
        changelogs = self._get_changelog_distribution(assignments)
        others = self._get_external_topic_distribution(assignments)
        return {
            member: ConsumerProtocolMemberAssignment(
                self.version,
                sorted(assignment.kafka_protocol_assignment(self._table_manager)),
                self._compress(
                    Metadata(
                        assignment=assignment,
                        url=self._member_urls[member],
                        changelog_distribution=changelogs,
                        external_topic_distribution=others,
                        topic_groups=group_of,
                        warm=sorted(warm[member]),
                    ).dumps()
                ),
            )
            for member, assignment in assignments.items()
        }


def _moved(distribution: Mapping[str, Any], former: str, url: str) -> dict[str, Any]:
    """Return the distribution with this worker's former address replaced by its current one."""
    return {url if one == former else one: held for one, held in distribution.items()}
