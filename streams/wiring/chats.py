"""The chat models that a worker asks, where its settings name some: for values of exchanges, and for summaries."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, NamedTuple

from schemas.settings import JudgeSettings, SummaryPlan

if TYPE_CHECKING:
    from streams.clients.chat import ChatModel


class Judge(NamedTuple):
    """A chat model, and how it is asked."""

    chat: ChatModel
    settings: JudgeSettings


class Chats:
    """None where a model is not configured: the estimator and the extraction need none."""

    def __init__(self, judge: JudgeSettings | None, plan: SummaryPlan) -> None:
        self.judge = None if judge is None else Judge(_chat_model(judge), judge)
        self.summaries = None if plan.model is None else _chat_model(plan.model)

    async def close(self) -> None:
        async with AsyncExitStack() as chats:
            for chat in (self.judge and self.judge.chat, self.summaries):
                if chat is not None:
                    chats.push_async_callback(chat.close)


def _chat_model(settings: JudgeSettings) -> ChatModel:
    from streams.clients.chat import ChatModel  # its packages take most of a second, and most workers need none

    return ChatModel(settings)
