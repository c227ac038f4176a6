"""The session beside SQLiteSession, whose log it keeps, in runs of the real Runner with a hand-written model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from agents import Agent, Model, ModelResponse, RunConfig, Runner, SQLiteSession, TResponseInputItem, Usage
from conftest import reserved_port
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from siltstone_client import Memory, Retries
from siltstone_client.openai_agents import SiltstoneSession


class Parrot(Model):
    """Answers the same to everything, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def get_response(self, *given: Any, **named: Any) -> ModelResponse:
        self.asked.append(named.get("input", given[1] if len(given) > 1 else None))
        text = ResponseOutputText(text="Noted", type="output_text", annotations=[])
        message = ResponseOutputMessage(
            id="__fake_id__", content=[text], role="assistant", status="completed", type="message"
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


async def run(session: Any, model: Parrot, text: str, **config: Any) -> None:
    await Runner.run(
        Agent(name="helper", model=model), text, session=session,
        run_config=RunConfig(tracing_disabled=True, **config),
    )  # fmt: skip


async def test_the_log_is_exact_and_what_is_said_is_copied_without_what_was_recalled(
    memory: Memory, user: str, said: Callable[[str], list[tuple[str, str]]]
) -> None:
    memory.remember("Ann lives in Oslo with three cats", user_id=user)
    oracle, inner, model = SQLiteSession("s"), SQLiteSession("s"), Parrot()
    session = SiltstoneSession(inner, memory, user_id=user)
    for text in ("Where do I live?", "And how many cats?"):
        await run(oracle, Parrot(), text)
        await run(session, model, text, session_input_callback=session.recall)
    assert await inner.get_items() == await oracle.get_items() == await session.get_items()
    assert await session.get_items(1) == await oracle.get_items(1)
    assert said("s") == [
        ("user", "Where do I live?"), ("assistant", "Noted"), ("user", "And how many cats?"), ("assistant", "Noted"),
    ]  # fmt: skip
    assert all("Oslo" in asked[0]["content"] for asked in model.asked)
    assert "Where do I live" not in model.asked[1][0]["content"]
    oracle.close()
    inner.close()


async def test_what_is_taken_back_and_added_again_was_said_once(
    memory: Memory, user: str, said: Callable[[str], list[tuple[str, str]]]
) -> None:
    inner = SQLiteSession("s")
    session = SiltstoneSession(inner, memory, user_id=user)
    items: list[TResponseInputItem] = [
        {"role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
        {"type": "function_call", "name": "f", "call_id": "c", "arguments": "{}"},
    ]
    await session.add_items(items)
    assert [await session.pop_item(), await session.pop_item(), await session.pop_item()] == [*items[::-1], None]
    await session.add_items(items)
    assert await inner.get_items() == items
    assert said("s") == [("user", "Hello")]
    await session.clear_session()
    assert await inner.get_items() == []
    inner.close()


async def test_the_agent_goes_on_while_nobody_answers_and_the_copy_follows(
    memory: Memory, user: str, said: Callable[[str], list[tuple[str, str]]], caplog: pytest.LogCaptureFixture
) -> None:
    inner = SQLiteSession("s")
    with reserved_port() as port, Memory(f"http://127.0.0.1:{port}", retries=Retries(attempts=1)) as away:
        session = SiltstoneSession(inner, away, user_id=user)
        await run(session, Parrot(), "Hello", session_input_callback=session.recall)
        assert "no memories are recalled: Unreachable" in caplog.text
        assert len(await inner.get_items()) == 2
        session._talk._memory = memory
        await run(session, Parrot(), "Again")
    assert [text for _, text in said("s")] == ["Hello", "Noted", "Again", "Noted"]
    inner.close()


async def test_evaluation_is_no_access(memory: Memory, user: str, touches: Callable[[], int]) -> None:
    inner = SQLiteSession("s")
    session = SiltstoneSession(inner, memory, user_id=user, touch=False)
    await session.recall([], [{"role": "user", "content": "bees?"}])
    assert touches() == 0
    inner.close()
