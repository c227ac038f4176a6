"""Finds missing rights: it tries each operation that a worker needs, in a way that changes nothing.

The creation of a topic is only validated. A fetch asks for one byte. A produce request has no records, because the
broker checks the right before the content. The group's coordinator reports the operations that are allowed on the
group.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from aiokafka import errors
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import DeleteAclsRequest, DescribeGroupsRequest_v3, DescribeGroupsResponse_v3
from aiokafka.protocol.api import Request
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.produce import ProduceRequest

from schemas.rights import Right, group_right, not_allowed, topic_rights
from schemas.settings import KafkaSettings
from schemas.topic_specs import changelog_specs, tokens_spec, topic_specs
from streams.kafka.clients.broker import admin_client, new_topic

#: A broker's error codes if an operation on a topic, or on a group, is not allowed.
TOPIC_REFUSED = errors.TopicAuthorizationFailedError.errno
GROUP_REFUSED = errors.GroupAuthorizationFailedError.errno
#: A broker reports the operations that are allowed on a group as bits. These are the bit of READ, and the value that
#: a broker sends if it does not report the operations.
READ_BIT, NOT_SAID = 1 << 3, -(2**31)
#: The maximum number of attempts, and the seconds between two of them. A new topic has no leader for a moment, and a
#: new cluster has no coordinator.
ATTEMPTS, AGAIN_SECONDS = 50, 0.1
ANSWER_MS = 5_000


class Tried(NamedTuple):
    """The missing rights, and the topics that do not exist (`absent`).

    For an absent topic, only the right to create it was tried, and only if the worker would create the topic.
    """

    missing: Sequence[Right]
    absent: Sequence[str]


async def try_rights(kafka: KafkaSettings, changelogs: frozenset[str], *, tokens: bool = False) -> Tried:
    """Try all rights that a worker needs. With `tokens`, the worker also reads the topic of tokens.

    `changelogs` are the names of the changelogs' topics. Raises `BrokerUnavailable`.
    """
    wanted = topic_rights(kafka, changelogs, tokens=tokens)
    async with admin_client(kafka) as admin:
        if not await _knows_rights(admin):
            return Tried([], [])
        leaders, absent, unseen = await _described(admin, list(wanted))
        missing = [right for name in unseen for right in wanted[name]]
        missing += await _creations(admin, kafka, [name for name in absent if _is_created(kafka, name, changelogs)])
        missing += await _topics(admin, wanted, leaders)
        if not await _group_allowed(admin, kafka.group_id):
            missing.append(group_right(kafka))
    return Tried(missing, absent)


async def require_rights(kafka: KafkaSettings, changelogs: frozenset[str], *, tokens: bool = False) -> Tried:
    """Raise `NotAllowed` if a right is missing. Also raises `BrokerUnavailable`."""
    tried = await try_rights(kafka, changelogs, tokens=tokens)
    if tried.missing:
        raise not_allowed(kafka, tried.missing)
    return tried


async def require_write(kafka: KafkaSettings, topic: str) -> bool:
    """Return True if the topic exists. Raises `NotAllowed` if we may not write to it; `BrokerUnavailable`."""
    right = Right("WRITE", "topic", topic)
    async with admin_client(kafka) as admin:
        leaders, absent, unseen = await _described(admin, [topic])
        if await _knows_rights(admin) and (unseen or await _topics(admin, {topic: (right,)}, leaders)):
            raise not_allowed(kafka, [right])
    return not absent


def _is_created(kafka: KafkaSettings, name: str, changelogs: frozenset[str]) -> bool:
    return kafka.create_topics or name in changelogs


async def _knows_rights(admin: AIOKafkaAdminClient) -> bool:
    """True if the broker checks rights.

    Tansu does not: it allows every operation. It would also create a topic whose creation should only be validated.
    """
    connection = await admin._client._get_conn(admin._client.get_random_node())
    if connection is None:
        raise errors.KafkaConnectionError("no connection to any broker")
    return DeleteAclsRequest.API_KEY in connection._versions


async def _described(
    admin: AIOKafkaAdminClient, names: Sequence[str]
) -> tuple[dict[int, list[str]], list[str], list[str]]:
    """Return three values: topics, by the leader of their first partition; absent topics; topics we may not see."""
    for attempt in range(ATTEMPTS):
        answer = await admin._client.send(
            admin._client.get_random_node(), MetadataRequest(list(names), allow_auto_topic_creation=False)
        )
        told = {topic[1]: topic for topic in answer.topics}
        leaders: dict[int, list[str]] = defaultdict(list)
        absent, unseen, waiting = [], [], []
        for name in names:
            error, partitions = told[name][0], told[name][3]
            leader = min(partitions, key=lambda partition: partition[1])[2] if partitions else -1
            if error == TOPIC_REFUSED:
                unseen.append(name)
            elif error == errors.UnknownTopicOrPartitionError.errno:
                absent.append(name)
            elif leader < 0:
                waiting.append(name)
            else:
                leaders[leader].append(name)
        if not waiting or attempt == ATTEMPTS - 1:
            break
        await asyncio.sleep(AGAIN_SECONDS)
    return leaders, absent, unseen


async def _creations(admin: AIOKafkaAdminClient, kafka: KafkaSettings, names: Sequence[str]) -> list[Right]:
    if not names:
        return []
    specs = (*topic_specs(kafka), *changelog_specs(kafka), tokens_spec(kafka))
    topics = [new_topic(spec) for spec in specs if spec.name in names]
    answer = await admin.create_topics(topics, validate_only=True)
    return [Right("CREATE", "topic", name) for name, code, *_ in answer.topic_errors if code == TOPIC_REFUSED]


async def _topics(
    admin: AIOKafkaAdminClient, wanted: Mapping[str, Sequence[Right]], leaders: Mapping[int, Sequence[str]]
) -> list[Right]:
    missing = []
    for leader, names in leaders.items():
        for operation in ("READ", "WRITE"):
            asked = {name: right for name in names for right in wanted[name] if right.operation == operation}
            refused = await _refused(admin, leader, operation, list(asked)) if asked else set()
            missing += [right for name, right in asked.items() if name in refused]
    return missing


async def _refused(admin: AIOKafkaAdminClient, leader: int, operation: str, names: Sequence[str]) -> set[str]:
    """Return the topics, out of `names`, on which the broker does not allow the operation."""
    request: Request[Any]
    if operation == "READ":
        request = FetchRequest(0, 0, 1, 0, [(name, [(0, 0, 1)]) for name in names])
    else:
        request = ProduceRequest(None, -1, ANSWER_MS, [(name, [(0, b"")]) for name in names])
    answer = await admin._client.send(leader, request)
    return {topic for topic, partitions, *_ in answer.topics if any(one[1] == TOPIC_REFUSED for one in partitions)}


class _Described(DescribeGroupsRequest_v3):  # type: ignore[misc]  # aiokafka has no types
    """A request for the description of a group.

    aiokafka's own class decodes the answer as an older version, which does not have the allowed operations.
    """

    RESPONSE_TYPE = DescribeGroupsResponse_v3


class _DescribeGroup(Request[_Described]):  # type: ignore[misc]  # as above
    API_KEY = DescribeGroupsRequest_v3.API_KEY

    def __init__(self, group: str) -> None:
        self._group = group

    def build(self, request_struct_class: type[_Described]) -> _Described:
        return request_struct_class([self._group], True)


async def _group_allowed(admin: AIOKafkaAdminClient, group: str) -> bool:
    """True if we may read as this group, or if the broker neither reports the allowed operations nor refuses us."""
    for _ in range(ATTEMPTS):
        try:
            coordinator = await admin.find_coordinator(group)
            break
        except errors.GroupAuthorizationFailedError:
            return False
        except (errors.CoordinatorNotAvailableError, errors.NotCoordinatorForGroupError):
            await asyncio.sleep(AGAIN_SECONDS)
    else:
        return True
    with contextlib.suppress(errors.IncompatibleBrokerVersion, NotImplementedError):
        answer = await admin._client.send(coordinator, _DescribeGroup(group))
        for error, *_, allowed in answer.groups:
            if error == GROUP_REFUSED or (not error and allowed != NOT_SAID and not allowed & READ_BIT):
                return False
    return True
