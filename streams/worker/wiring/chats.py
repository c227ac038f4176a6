"""The chat models that the settings name: for ratings of exchanges, and for summaries."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, NamedTuple

from schemas.settings import RaterSettings

if TYPE_CHECKING:
    from streams.models.chat import ChatModel


class RatingChat(NamedTuple):
    """The chat model that rates exchanges, and its settings."""

    chat: ChatModel
    settings: RaterSettings


class Chats:
    """The chat models that the settings configure.

    A model that is not configured is None. Then the local estimator rates the exchanges, and the extraction makes the
    summaries.
    """

    def __init__(self, rater: RaterSettings | None, summaries: RaterSettings | None) -> None:
        self.rater = None if rater is None else RatingChat(_chat_model(rater), rater)
        self.summaries = None if summaries is None else _chat_model(summaries)

    async def close(self) -> None:
        async with AsyncExitStack() as chats:
            for chat in (self.rater and self.rater.chat, self.summaries):
                if chat is not None:
                    chats.push_async_callback(chat.close)


def _chat_model(settings: RaterSettings) -> ChatModel:
    from streams.models.chat import ChatModel  # imported only if needed, because it takes most of a second

    return ChatModel(settings)
