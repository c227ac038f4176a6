"""A memory service for Google's Agent Development Kit (ADK) that stores memories in Siltstone.

    Runner(…, memory_service=SiltstoneMemoryService(Memory("http://127.0.0.1:8000")))

For `adk web --memory_service_uri siltstone://127.0.0.1:8000`, register the scheme in the agent's `services.py`:

    from siltstone_client.adk import register

    register()
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlsplit

from google.adk.cli.service_registry import get_service_registry
from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai import types

from siltstone_client.answers import Hit
from siltstone_client.memory import Memory
from siltstone_client.said import found, portions, said

SCHEME: Final = "siltstone"
#: The session id for events that are added without a session id.
NO_SESSION: Final = "__unknown_session_id__"
#: The maximum number of sessions for which the service remembers the added events. If there are more, it forgets the
#: least recently used sessions.
MOST_SESSIONS: Final = 1000


def scoped(app_name: str, user_id: str) -> str:
    """The id of the Siltstone user for a user of an ADK application.

    Equal user ids of two applications give two Siltstone users, so applications do not share memories.
    """
    return f"{quote(app_name, safe='')}/{quote(user_id, safe='')}"


class SiltstoneMemoryService(BaseMemoryService):
    """An ADK memory service that stores the texts of sessions in Siltstone.

    Searches find a text as soon as it is added. Siltstone decides which texts become long-term memories. An event's
    id becomes the message's id, so a session that is added repeatedly is stored once. `user_of` is a function that
    returns the Siltstone user for an application and its user. Its default is `scoped`; with `lambda app, user:
    user`, applications share users. With `touch=False`, searches do not count as accesses. A failed call raises
    `SiltstoneError`.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        user_of: Callable[[str, str], str] = scoped,
        top_k: int = 10,
        touch: bool = True,
    ) -> None:
        self._memory, self._user_of, self._top_k, self._touch = memory, user_of, top_k, touch
        self._added: OrderedDict[tuple[str, str], set[str]] = OrderedDict()

    def close(self) -> None:
        """Close the connections of the Siltstone client, which cannot be used afterwards."""
        self._memory.close()

    async def add_session_to_memory(self, session: Session) -> None:
        """Add the events of a session to Siltstone, without the events that were added before."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add the texts of users and agents to Siltstone, each event once. Each message gets `custom_metadata`."""
        user, session = self._user_of(app_name, user_id), session_id or NO_SESSION
        added = self._added_to(user, session)
        metadata = {"metadata": dict(custom_metadata)} if custom_metadata else {}
        records = [
            {**record, **metadata}
            for event in events
            if event.id not in added and (record := _record(event)) is not None
        ]
        for part in portions(records):
            await asyncio.to_thread(self._memory.add, part, user_id=user, session_id=session)
            added.update(record["message_id"] for record in part)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store the text of each entry as a memory. If an entry's id is a UUID, it becomes the memory's id."""
        for entry in memories:
            text = _text(entry.content)
            metadata = {**(custom_metadata or {}), **entry.custom_metadata}
            if text:
                await asyncio.to_thread(
                    self._memory.remember,
                    text,
                    user_id=self._user_of(app_name, user_id),
                    memory_id=_uuid(entry.id),
                    metadata=metadata or None,
                )

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Find the memories that answer the query, most relevant first."""
        user = self._user_of(app_name, user_id)
        answer = await asyncio.to_thread(
            found, self._memory, query, user_id=user, top_k=self._top_k, touch=self._touch
        )
        return SearchMemoryResponse(memories=[_entry(hit) for hit in answer.results])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Forget the memory with this id, as `search_memory` returned it. An id that is not a UUID is ignored."""
        if (found_id := _uuid(memory_id)) is not None:
            await asyncio.to_thread(self._memory.forget, found_id, user_id=self._user_of(app_name, user_id))

    def _added_to(self, user: str, session: str) -> set[str]:
        added = self._added.setdefault((user, session), set())
        self._added.move_to_end((user, session))
        if len(self._added) > MOST_SESSIONS:
            self._added.popitem(last=False)
        return added


def from_uri(uri: str, **_: Any) -> SiltstoneMemoryService:
    """A memory service for the worker at `siltstone://host:port`, or at `siltstone+https://host:port` for TLS.

    The token is read from the environment variable `SILTSTONE_TOKEN`.
    """
    parts = urlsplit(uri)
    if not parts.hostname:
        raise ValueError(f"{uri!r}: give it as {SCHEME}://host:port")
    scheme = "https" if parts.scheme.endswith("+https") else "http"
    url = f"{scheme}://{parts.netloc}{parts.path}"
    return SiltstoneMemoryService(Memory(url, token=os.environ.get("SILTSTONE_TOKEN") or None))


def register() -> None:
    """Register the schemes `siltstone` and `siltstone+https` with ADK."""
    for scheme in (SCHEME, f"{SCHEME}+https"):
        get_service_registry().register_memory_service(scheme, from_uri)


def _record(event: Event) -> dict[str, Any] | None:
    """The message to store for an event, or None if the event is partial or has no text."""
    text = "" if event.partial else _text(event.content)
    if not text:
        return None
    by_user = event.author == "user"
    record = {
        "role": "user" if by_user else "assistant",
        "content": text,
        "message_id": event.id,
        "timestamp": round(event.timestamp * 1000),
    }
    return record if by_user or not event.author else {**record, "agent_id": event.author}


def _text(content: types.Content | None) -> str:
    """The text of an event's content, without a model's thoughts, which are not part of the conversation."""
    parts = content.parts or [] if content else []
    return said(part.text for part in parts if not part.thought)


def _entry(hit: Hit) -> MemoryEntry:
    about = {"relevance": hit.relevance, "state": hit.state, "session_id": hit.session_id}
    return MemoryEntry(
        id=str(hit.id),
        content=types.Content(role="user", parts=[types.Part(text=hit.memory)]),
        timestamp=hit.created_at.isoformat(),
        custom_metadata={**hit.metadata, **about},
    )


def _uuid(given: str | None) -> uuid.UUID | None:
    try:
        return uuid.UUID(given) if given else None
    except ValueError:
        return None
