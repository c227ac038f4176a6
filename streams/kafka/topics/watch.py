"""Checks, while a worker runs, whether its topics were deleted, recreated or repartitioned.

A recreated topic has another id and another log, so the worker starts over with this topic. It also starts over if a
topic is missing. If a topic has another number of partitions, the worker stops.
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

#: Seconds between two checks of the topics.
WATCH_SECONDS = 2.0
#: A change of a topic counts only if this number of checks in a row have found it, because not all brokers learn of
#: the change at the same time.
LOOKS = 2
#: A topic counts as missing only if this number of checks in a row have not found it. The number is higher than
#: `LOOKS`, because the client that deleted the topic may recreate it.
LOOKS_GONE = 5
#: Maximum number of attempts to find a topic that was just created, and the seconds between two attempts.
TRIES, TRY_SECONDS = 50, 0.1


def changed(
    before: Mapping[str, Identity], now: Mapping[str, Identity], keyed: Collection[str]
) -> SiltstoneError | None:
    """Return the error for a change of the topics; None if there is no change.

    Topics that are not in `now` are ignored, because their state is unknown. A change of the number of partitions
    counts only for the topics in `keyed`.
    """
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
    """Checks the topics of a worker, over a separate connection.

    `noted` is the path of a file with topic ids. The offsets of the worker and of its consumer group belong to the
    topics with these ids.
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
        """Note the ids that the topics have now. Log and return the topics whose id differs from the id in the file.

        If no id differs, write the current ids to the file. Raises `BrokerUnavailable`, `DataDirError`.
        """
        self._before = await self._all()
        self._suspected, self._looks = "", 0
        last = await asyncio.to_thread(_read, self._noted)
        others = [name for name, identity in self.ids().items() if last.get(name, identity) != identity]
        if others and len(others) == len(last.keys() & self._before.keys()):
            log.info("all topics are new ones: this is another broker, or they were recreated")
        elif others:
            log.warning(
                "topics were deleted and recreated (%s): the worker starts over with them; unread records of the "
                "former ones are lost",
                ", ".join(others),
            )
        else:
            await self.note()
        return frozenset(others)

    def id_of(self, topic: str) -> str:
        """Return the id that the topic had at `begin`; an empty text if the broker has no topic ids."""
        return self.ids().get(topic, "")

    async def note(self) -> None:
        """Write the ids of `begin` to the file, because the offsets belong to these topics now.

        Raises `DataDirError`.
        """
        await asyncio.to_thread(_write, self._noted, self.ids())

    def ids(self) -> dict[str, str]:
        """Return the ids of all topics that have one, as of `begin`."""
        return {name: str(identity.id) for name, identity in self._before.items() if identity.id is not None}

    async def _all(self) -> dict[str, Identity]:
        """Return the identities of all topics that exist.

        Retries briefly if a topic is missing, because not all brokers know a new topic at once.
        """
        for _ in range(TRIES):
            seen = await self._ask()
            if GONE not in seen.values():
                break
            await asyncio.sleep(TRY_SECONDS)
        return {name: identity for name, identity in seen.items() if identity != GONE}

    async def look(self) -> None:
        """Check the topics once.

        Raises `TopicsRemade`, `PartitionsChanged` or `BrokerEmptied` if enough checks in a row have found the same
        change; `BrokerUnavailable` if no broker answers.
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
