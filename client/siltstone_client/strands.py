"""A store for the memory manager of Strands Agents that keeps the memories in Siltstone.

store = SiltstoneStore(memory, user_id="ann", session_id="s1", extraction=True)
agent = Agent(memory_manager=MemoryManager(stores=[store]))
"""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from strands.memory import AddMessagesContext, ExtractionConfig, MemoryEntry, MemoryStore, SearchOptions
from strands.types.content import Message

from siltstone_client.answers import Accepted, AcceptedMessages
from siltstone_client.memory import Memory
from siltstone_client.said import dated, found, portions, said

#: The number of results if neither the manager nor the store sets one.
DEFAULT_RESULTS = 5


class SiltstoneStore(MemoryStore):
    """A memory store of Strands Agents that has the memories of one Siltstone user.

    With `extraction=True`, the manager passes all messages to this store, and Siltstone decides which of them become
    long-term memories. If the manager passes a message again after a failure, the message is stored once. With
    `touch=False`, searches do not count as accesses. A failed call raises `SiltstoneError`; the manager then
    continues without memories, and tries again.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        user_id: str,
        session_id: str,
        name: str = "siltstone",
        description: str | None = "What the user said in earlier conversations",
        max_search_results: int | None = None,
        writable: bool = True,
        extraction: ExtractionConfig | bool | None = None,
        touch: bool = True,
    ) -> None:
        self.name, self.description, self.max_search_results = name, description, max_search_results
        self.writable, self.extraction = writable, extraction
        self._memory, self._user_id, self._session_id, self._touch = memory, user_id, session_id, touch
        self._run = uuid.uuid4().hex

    async def initialize(self) -> None:
        """Choose new message ids for an agent that starts, because each agent numbers its messages from 0."""
        self._run = uuid.uuid4().hex

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """The memories that match the query, most relevant first.

        The text of an entry begins with its date, because Strands shows only texts to the model. The `metadata` has
        the memory's id, relevance, state and creation time.
        """
        asked = (options or {}).get("max_search_results")
        most = next(one for one in (asked, self.max_search_results, DEFAULT_RESULTS) if one is not None)
        if most < 1:
            return []
        answer = await asyncio.to_thread(
            found, self._memory, query, user_id=self._user_id, top_k=most, touch=self._touch
        )
        return [
            MemoryEntry(
                content=dated(hit),
                metadata={
                    **hit.metadata,
                    "id": str(hit.id),
                    "relevance": hit.relevance,
                    "state": hit.state,
                    "created_at": hit.created_at.isoformat(),
                },
            )
            for hit in answer.results
        ]

    async def add(self, content: str, metadata: dict[str, Any] | None = None) -> Accepted | None:
        """Remember a text. If a memory already says the same, the text is merged into that memory."""
        text = said([content])
        if not text:
            return None
        return await asyncio.to_thread(
            self._memory.remember, text, user_id=self._user_id, session_id=self._session_id, metadata=metadata
        )

    async def add_messages(
        self, messages: list[Message], context: AddMessagesContext | None = None
    ) -> list[AcceptedMessages]:
        """Add the texts of users and assistants to the session."""
        given = context.sequence_numbers if context is not None else None
        numbers: Sequence[int | None] = given or [None] * len(messages)
        records = [
            {"role": message["role"], "content": text, **self._id(number, message["role"], text)}
            for number, message in zip(numbers, messages, strict=True)
            if (text := said(_text(block) for block in message["content"]))
        ]
        return [
            await asyncio.to_thread(self._memory.add, part, user_id=self._user_id, session_id=self._session_id)
            for part in portions(records)
        ]

    def _id(self, number: int | None, role: str, text: str) -> dict[str, str]:
        """The field `message_id` of a message, which is the same if the message is passed again.

        Without a number, the field is left out, because the store could not recognise a repeated message.
        """
        if number is None:
            return {}
        digest = hashlib.sha256(f"{self._run}\0{number}\0{role}\0{text}".encode()).hexdigest()
        return {"message_id": digest[:32]}


def _text(block: Mapping[str, Any]) -> str | None:
    """The text of a content block, or None for a block without text, such as a tool call or reasoning."""
    text = block.get("text")
    return text if isinstance(text, str) else None
