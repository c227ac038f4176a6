"""The memory service beside ADK's own in memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from google.adk.cli.service_registry import get_service_registry
from google.adk.events.event import Event
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai import types

from siltstone_client import Memory
from siltstone_client.adk import SiltstoneMemoryService, from_uri, register, scoped
from siltstone_client.said import injected

SAID = [
    ("user", "I am allergic to peanuts"),
    ("helper", "I will keep the nuts away"),
    ("user", "My sister plays chess in Oslo"),
]


def event(author: str, text: str, **fields: object) -> Event:
    content = types.Content(role="user" if author == "user" else "model", parts=[types.Part(text=text)])
    return Event.model_validate({"author": author, "content": content, **fields})


def session(user: str, events: list[Event], session_id: str = "s") -> Session:
    return Session(id=session_id, app_name="app", user_id=user, events=events)


@pytest.fixture
def service(memory: Memory) -> SiltstoneMemoryService:
    return SiltstoneMemoryService(memory)


async def test_what_one_finds_the_other_finds_within_the_application_and_user(
    service: SiltstoneMemoryService, user: str
) -> None:
    oracle = InMemoryMemoryService()
    events = [event(*one) for one in SAID]
    for one in (oracle, service):
        await one.add_session_to_memory(session(user, events))
        await one.add_session_to_memory(session(user, events))
    for query, app, who in (
        ("peanuts", "app", user), ("chess", "app", user), ("chess", "other", user), ("chess", "app", "else"),
        ("", "app", user),
    ):  # fmt: skip
        theirs, ours = [
            (await one.search_memory(app_name=app, user_id=who, query=query)).memories for one in (oracle, service)
        ]
        texts = [part.text or "" for memory in ours[:1] for part in memory.content.parts or ()]
        assert bool(theirs) == bool(ours), query
        for memory in theirs:
            assert any((part.text or "") in texts[0] for part in memory.content.parts or ())


async def test_each_event_is_said_once_whoever_adds_it_again(memory: Memory, user: str) -> None:
    events = [event(*one) for one in SAID]
    for _ in range(2):  # another process knows nothing of the first
        service = SiltstoneMemoryService(memory)
        await service.add_session_to_memory(session(user, events[:2]))
        await service.add_session_to_memory(session(user, events))
        await service.add_events_to_memory(app_name="app", user_id=user, events=events[1:], session_id="s")
    shown = memory.exchanges(user_id=scoped("app", user), session_id="s")
    said = [(one.message_id, one.content) for exchange in shown.exchanges for one in exchange.messages]
    assert said == [(one.id, text) for one, (_, text) in zip(events, SAID, strict=True)]


async def test_thoughts_parts_of_answers_and_what_was_recalled_are_not_said(
    service: SiltstoneMemoryService, memory: Memory, user: str
) -> None:
    thought = types.Content(role="model", parts=[types.Part(text="hm", thought=True)])
    await service.add_memory(
        app_name="app", user_id=user,
        memories=[MemoryEntry(content=types.Content(parts=[types.Part(text="Bees make honey")]))],
    )  # fmt: skip
    recalled = injected(memory.search("bees", user_id=scoped("app", user)))
    assert recalled
    events = [
        event("helper", "half an ans", partial=True),
        Event(author="helper", content=thought),
        event("user", f"{recalled}\nHello"),
        event("user", recalled),
    ]
    await service.add_session_to_memory(session(user, events))
    shown = memory.exchanges(user_id=scoped("app", user), session_id="s")
    assert [one.content for exchange in shown.exchanges for one in exchange.messages] == ["Hello"]


async def test_what_is_deleted_is_found_no_more(service: SiltstoneMemoryService, user: str) -> None:
    await service.add_session_to_memory(session(user, [event(*SAID[0])]))
    found = (await service.search_memory(app_name="app", user_id=user, query="peanuts")).memories
    await service.delete_memory(app_name="app", user_id=user, memory_id=found[0].id)
    await service.delete_memory(app_name="app", user_id=user, memory_id="no id of a memory")
    assert (await service.search_memory(app_name="app", user_id=user, query="peanuts")).memories == []


async def test_it_is_a_scheme(url: str, user: str) -> None:
    register()
    service = get_service_registry().create_memory_service(url.replace("http", "siltstone"), agents_dir=".")
    assert isinstance(service, SiltstoneMemoryService)
    assert (await service.search_memory(app_name="app", user_id=user, query="bees")).memories == []
    service.close()
    with pytest.raises(ValueError, match="siltstone://host:port"):
        from_uri("siltstone:///nowhere")


async def test_evaluation_is_no_access(memory: Memory, user: str, touches: Callable[[], int]) -> None:
    memory.remember("Bees make honey", user_id=user)
    service = SiltstoneMemoryService(memory, user_of=lambda app, who: who, touch=False)
    assert (await service.search_memory(app_name="app", user_id=user, query="what do bees make?")).memories
    assert touches() == 0
