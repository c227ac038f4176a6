"""A session for the OpenAI Agents SDK that also stores the conversation in Siltstone and recalls memories.

session = SiltstoneSession(SQLiteSession("s1", "log.db"), memory, user_id="ann")
config = RunConfig(session_input_callback=session.recall)
await Runner.run(agent, "Where do I live?", session=session, run_config=config)
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from agents import SessionSettings, TResponseInputItem
from agents.memory import Session

from siltstone_client.memory import Memory
from siltstone_client.said import is_injected, said
from siltstone_client.talk import Talk, recalled

_ROLES = ("user", "assistant")


class SiltstoneSession:
    """A session of the OpenAI Agents SDK that also copies the conversation to Siltstone.

    `inner` is any other session of the SDK; it keeps the exact log of all items. The texts of users and assistants
    are copied to Siltstone; the texts of tools and recalled memories are not. If no worker answers, the agent
    continues, and the texts are copied later. With `touch=False`, the search for memories does not count as an
    access.
    """

    def __init__(self, inner: Session, memory: Memory, *, user_id: str, top_k: int = 5, touch: bool = True) -> None:
        self._inner, self._memory = inner, memory
        self._user_id, self._top_k, self._touch = user_id, top_k, touch
        self._talk = Talk(memory, user_id, inner.session_id)
        #: The items that `pop_item` removed, with their counts. If a run is tried again, it adds these items again,
        #: but Siltstone already has their texts.
        self._popped: Counter[str] = Counter()

    @property
    def session_id(self) -> str:
        return self._inner.session_id

    @session_id.setter
    def session_id(self, session_id: str) -> None:
        self._inner.session_id = session_id
        self._talk = Talk(self._memory, self._user_id, session_id)

    @property
    def session_settings(self) -> SessionSettings | None:
        return self._inner.session_settings

    @session_settings.setter
    def session_settings(self, settings: SessionSettings | None) -> None:
        self._inner.session_settings = settings

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items in the log of the inner session."""
        return await self._inner.get_items(limit)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items to the inner session, and their texts to Siltstone. Recalled memories are added to neither."""
        own = [item for item in items if not _is_recalled(item)]
        await self._inner.add_items(own)
        await self._talk.say(self._new(own))

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the newest item from the inner session, and return it. Its text stays in Siltstone."""
        item = await self._inner.pop_item()
        if item is not None:
            self._popped[_key(item)] += 1
        return item

    async def clear_session(self) -> None:
        """Clear the log of the inner session. Memories in Siltstone stay.

        Use `Memory.forget` or `Memory.forget_user` to remove memories.
        """
        self._popped.clear()
        await self._inner.clear_session()

    async def recall(
        self, history: list[TResponseInputItem], new: list[TResponseInputItem]
    ) -> list[TResponseInputItem]:
        """The input of a run, with the memories that match the new input put before the history.

        Pass this method as `RunConfig(session_input_callback=…)`. If no worker answers, no memories are added.
        """
        query = said(_text(item) for item in new if _role(item) == "user")
        text = await recalled(
            self._memory, query, user_id=self._user_id, top_k=self._top_k, touch=self._touch, beside=self.session_id
        )
        before: list[TResponseInputItem] = [{"role": "user", "content": text}] if text else []
        return before + history + new

    def _new(self, items: Iterable[TResponseInputItem]) -> list[tuple[str, str]]:
        messages = []
        for item in items:
            if self._popped[key := _key(item)] > 0:
                self._popped[key] -= 1
                continue
            role, text = _role(item), said([_text(item)])
            if role in _ROLES and text:
                messages.append((role, text))
        return messages


def _role(item: Any) -> str:
    return str(item.get("role", ""))


def _text(item: Any) -> str:
    """The text of a message, or the texts of its parts. The text is empty for an item that is not a message."""
    content = item.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def _is_recalled(item: Any) -> bool:
    return _role(item) == "user" and is_injected(_text(item))


def _key(item: Any) -> str:
    return json.dumps(item, sort_keys=True, default=str)
