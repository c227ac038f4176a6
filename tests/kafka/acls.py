"""Rights of the tests' user, given and taken as an administrator does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest

from schemas.rights import Right
from tests.kafka.cluster import Cluster
from tests.support.waiting import until_it_is

RESOURCES = {"topic": 2, "group": 3}
OPERATIONS = {"READ": 3, "WRITE": 4, "CREATE": 5, "DESCRIBE": 8}
LITERAL, PREFIXED, ALLOW = 3, 4, 3


async def grant(brokers: Cluster, user: str, rights: Iterable[Right], *, pattern: int = LITERAL) -> None:
    await _ask(brokers, CreateAclsRequest, user, rights, pattern)


async def revoke(brokers: Cluster, user: str, rights: Iterable[Right], *, pattern: int = LITERAL) -> None:
    await _ask(brokers, DeleteAclsRequest, user, rights, pattern)


async def _ask(
    brokers: Cluster,
    request: type[CreateAclsRequest] | type[DeleteAclsRequest],
    user: str,
    rights: Iterable[Right],
    pattern: int,
) -> None:
    """Until it is so: a broker hears of it a moment after the controller."""
    admin = AIOKafkaAdminClient(bootstrap_servers=brokers.inside)
    await admin.start()
    try:
        for right in rights:
            kind, operation = RESOURCES[right.resource], OPERATIONS[right.operation]
            acl = kind, right.name, pattern, f"User:{user}", "*", operation, ALLOW
            answer = await admin._send_to_controller(request(*acl))
            codes = getattr(answer, "creation_responses", None) or answer.filter_responses
            assert [one[0] for one in codes] == [0]

            async def heard(acl: tuple[Any, ...] = acl) -> bool:
                told = await admin._send_request(DescribeAclsRequest(*acl))
                return bool(told.resources) == (request is CreateAclsRequest)

            await until_it_is(heard)
    finally:
        await admin.close()
