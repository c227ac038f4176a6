"""Whether a worker's topics are still those that it began with.

The rule: a topic of another id is another log, and the worker starts over with it; so it does where one is gone. With
another number of partitions it cannot go on: it stops.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from pathlib import Path

import aiokafka.errors
import orjson
from aiokafka.admin import AIOKafkaAdminClient

from schemas.errors import (
    BrokerEmptied,
    BrokerUnavailable,
    DataDirError,
    PartitionsChanged,
    SiltstoneError,
    TopicsRemade,
)
from schemas.settings import KafkaSettings
from schemas.topic_specs import changelog_specs, topic_specs
from streams.kafka.clients.broker import client_options
from streams.kafka.topics.ids import GONE, Identity, identities
from tables.paths import write_whole

log = logging.getLogger(__name__)

#: How often it is looked.
WATCH_SECONDS = 2.0
#: A change counts after this many looks in a row: one broker may hear of it later than another.
LOOKS = 2
#: The same for a missing topic: the client that deleted it may be about to recreate it.
LOOKS_GONE = 5
#: For how long a topic that was just created is waited for.
TRIES, TRY_SECONDS = 50, 0.1


def changed(
    before: Mapping[str, Identity], now: Mapping[str, Identity], keyed: Collection[str]
) -> SiltstoneError | None:
    """What has become of the topics; of those of which nothing is said nothing is known."""
    said = {name: identity for name, identity in now.items() if name in before}
    if remade := [name for name, identity in said.items() if _is_another(before[name], identity)]:
        return TopicsRemade(remade)
    for name, identity in said.items():
        if name in keyed and identity.partitions not in (0, before[name].partitions):
            return PartitionsChanged(name, identity.partitions, before[name].partitions)
    if gone := [name for name, identity in said.items() if identity == GONE]:
        return BrokerEmptied(gone)
    return None


def _is_another(before: Identity, now: Identity) -> bool:
    return None not in (before.id, now.id) and before.id != now.id


class TopicWatch:
    """Looks at the topics of a worker, over a connection of its own.

    `noted` is a file with the ids of those that the worker has begun with: its offsets, and the group's, are of them.
    """

    def __init__(self, kafka: KafkaSettings, noted: Path) -> None:
        self._kafka, self._noted = kafka, noted
        specs = (*topic_specs(kafka), *changelog_specs(kafka))
        self._names = [spec.name for spec in specs]
        self._keyed = {spec.name for spec in specs if spec.keyed}
        self._before: dict[str, Identity] = {}
        self._suspected, self._looks = "", 0
        self._admin: AIOKafkaAdminClient | None = None

    async def begin(self) -> frozenset[str]:
        """These topics are those that count from now on. Which of them are others than those that were noted.

        That is said. Raises `BrokerUnavailable`, `DataDirError`.
        """
        self._before = await self._all()
        self._suspected, self._looks = "", 0
        last = await asyncio.to_thread(_read, self._noted)
        others = [name for name, identity in self.ids().items() if last.get(name, identity) != identity]
        if others and len(others) == len(last.keys() & self._before.keys()):
            log.info("all topics are others than before: it is another broker, or they were recreated")
        elif others:
            log.warning(
                "topics were deleted and recreated (%s): the worker starts over with them; what was in the former "
                "ones and had not been read is lost",
                ", ".join(others),
            )
        else:
            await self.note()
        return frozenset(others)

    def id_of(self, topic: str) -> str:
        """That of a topic as it was when the worker began; empty where the broker has none."""
        return self.ids().get(topic, "")

    async def note(self) -> None:
        """The worker has begun with these topics: from now on, its offsets are of them. Raises `DataDirError`."""
        await asyncio.to_thread(_write, self._noted, self.ids())

    def ids(self) -> dict[str, str]:
        """Of each topic that the broker gives one; since `begin`."""
        return {name: str(identity.id) for name, identity in self._before.items() if identity.id is not None}

    async def _all(self) -> dict[str, Identity]:
        """Those of all topics; asked again for a moment, because a new topic is not everywhere at once."""
        for _ in range(TRIES):
            seen = await self._ask()
            if GONE not in seen.values():
                break
            await asyncio.sleep(TRY_SECONDS)
        return {name: identity for name, identity in seen.items() if identity != GONE}

    async def look(self) -> None:
        """Raises `TopicsRemade`, `PartitionsChanged` or `BrokerEmptied` where it has been so for some looks.

        `BrokerUnavailable` where nothing can be seen.
        """
        seen = changed(self._before, await self._ask(), self._keyed)
        if str(seen) != self._suspected:
            self._suspected, self._looks = str(seen), 0
        self._looks += 1
        if seen is not None and self._looks >= (LOOKS_GONE if type(seen) is BrokerEmptied else LOOKS):
            raise seen

    async def close(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            await admin.close()

    async def _ask(self) -> dict[str, Identity]:
        try:
            if self._admin is None:
                self._admin = AIOKafkaAdminClient(**client_options(self._kafka), request_timeout_ms=10_000)
                await self._admin.start()
            return await identities(self._admin, self._names)
        except (aiokafka.errors.KafkaError, OSError, TimeoutError) as exc:
            await self.close()
            raise BrokerUnavailable(self._kafka.bootstrap_servers, type(exc).__name__) from exc


def _read(noted: Path) -> dict[str, str]:
    try:
        ids: dict[str, str] = orjson.loads(noted.read_bytes()) if noted.exists() else {}
    except (OSError, orjson.JSONDecodeError) as exc:
        raise DataDirError(noted, getattr(exc, "strerror", None) or str(exc)) from exc
    return ids


def _write(noted: Path, ids: dict[str, str]) -> None:
    try:
        write_whole(noted, orjson.dumps(ids))
    except OSError as exc:
        raise DataDirError(noted, exc.strerror or str(exc)) from exc
