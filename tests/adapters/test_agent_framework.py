"""The provider in runs of a real agent, beside the framework's own history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_framework import Agent, BaseChatClient, ChatResponse, InMemoryHistoryProvider, Message

from siltstone_client import Memory
from siltstone_client.agent_framework import SiltstoneProvider


class Parrot(BaseChatClient):
    """Answers the same to everything, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[Message]] = []

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
        self.asked.append(list(messages))

        async def answer() -> ChatResponse[Any]:
            return ChatResponse(messages=[Message("assistant", ["Noted"])])

        return answer()


async def test_what_is_remembered_comes_before_the_input_and_is_never_said_again(
    memory: Memory, user: str, said: Callable[[str], list[tuple[str, str]]]
) -> None:
    memory.remember("Ann lives in Oslo with three cats", user_id=user)
    client, history = Parrot(), InMemoryHistoryProvider()
    agent = Agent(client, context_providers=[history, SiltstoneProvider(memory, user_id=user)])
    session = agent.create_session()
    for text in ("Where do I live?", "And how many cats?"):
        await agent.run(text, session=session)
    assert all(any("Oslo" in message.text for message in asked) for asked in client.asked)
    kept = await history.get_messages(session.session_id, state=session.state[history.source_id])
    assert said(session.session_id) == [(str(one.role), one.text) for one in kept]


async def test_evaluation_is_no_access(memory: Memory, user: str, touches: Callable[[], int]) -> None:
    agent = Agent(Parrot(), context_providers=[SiltstoneProvider(memory, user_id=user, touch=False)])
    await agent.run("bees?", session=agent.create_session())
    assert touches() == 0
