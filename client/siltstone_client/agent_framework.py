"""A context provider for the Microsoft Agent Framework that stores conversations and recalls memories.

agent = Agent(client, context_providers=[SiltstoneProvider(memory, user_id="ann")])
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final

from agent_framework import AgentSession, ContextProvider, Message, SessionContext, SupportsAgentRun

from siltstone_client.memory import Memory
from siltstone_client.said import said
from siltstone_client.talk import Talk, recalled

#: The maximum number of sessions whose unsent messages the provider keeps. If there are more, it drops the least
#: recently used sessions.
MOST_SESSIONS: Final = 1000
_ROLES = ("user", "assistant")


class SiltstoneProvider(ContextProvider):
    """A context provider that adds matching memories before a run, and stores the input and the answer after it.

    Messages that a context provider added are not stored. If no worker answers, the agent continues without memories,
    and the messages are sent later. With `touch=False`, the search for memories does not count as an access.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        user_id: str,
        source_id: str = "siltstone",
        top_k: int = 5,
        touch: bool = True,
    ) -> None:
        super().__init__(source_id)
        self._memory, self._user_id, self._top_k, self._touch = memory, user_id, top_k, touch
        self._talks: OrderedDict[str, Talk] = OrderedDict()

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add the memories that match the user's input to the context. If no worker answers, add none."""
        query = said(message.text for message in context.input_messages if _role(message) == "user")
        text = await recalled(
            self._memory,
            query,
            user_id=self._user_id,
            top_k=self._top_k,
            touch=self._touch,
            beside=_session_id(session, context),
        )
        if text:
            context.extend_messages(self, [Message("user", [text])])

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Send the input and the answer of the run to Siltstone."""
        response = context.response
        messages = [*context.input_messages, *(response.messages if response else ())]
        await self._talk(_session_id(session, context)).say(_spoken(messages))

    def _talk(self, session_id: str) -> Talk:
        if session_id not in self._talks:
            self._talks[session_id] = Talk(self._memory, self._user_id, session_id)
            if len(self._talks) > MOST_SESSIONS:
                self._talks.popitem(last=False)
        self._talks.move_to_end(session_id)
        return self._talks[session_id]


def _session_id(session: AgentSession, context: SessionContext) -> str:
    return context.session_id or session.session_id


def _spoken(messages: Iterable[Message]) -> list[tuple[str, str]]:
    """The role and the text of each message of users and assistants.

    Messages with an attribution are left out, because a provider added them.
    """
    return [
        (role, text)
        for message in messages
        if (role := _role(message)) in _ROLES and "_attribution" not in message.additional_properties
        if (text := said([message.text]))
    ]


def _role(message: Message) -> str:
    return str(message.role)
