"""The store under Strands' own memory manager and extraction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from strands.memory import AddMessagesContext, MemoryManager
from strands.memory.extraction.coordinator import ExtractionCoordinator, _ExtractionBinding
from strands.memory.extraction.resolve_extraction_config import _resolve_extraction_config
from strands.types.content import Message

from siltstone_client import Memory
from siltstone_client.strands import SiltstoneStore

MESSAGES: list[Message] = [
    {"role": "user", "content": [{"text": "I am allergic to peanuts"}]},
    {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "f", "input": {}}}, {"text": "Noted"}]},
]


@pytest.fixture
def store(memory: Memory, user: str) -> SiltstoneStore:
    return SiltstoneStore(memory, user_id=user, session_id="s", extraction=True)


async def test_the_manager_adds_and_finds(store: SiltstoneStore) -> None:
    manager = MemoryManager(stores=[store])
    await manager.add("Ann keeps bees", {"metadata": {"source": "form"}})
    (found,) = await manager.search("what does she keep?")
    dated, _, text = found.content.partition("] ")
    assert (dated[0], dated.endswith(", today"), text) == ("[", True, "Ann keeps bees"), "Strands shows only the text"
    assert found.store_name == "siltstone"
    assert found.metadata is not None
    assert (found.metadata["source"], found.metadata["state"]) == ("form", "active")
    assert await manager.search("bees", {"max_search_results": 0}) == []


async def test_what_is_extracted_is_what_was_said_once(
    store: SiltstoneStore, said: Callable[[str], list[tuple[str, str]]]
) -> None:
    config = _resolve_extraction_config(True, store)
    assert config is not None
    model: Any = None
    coordinator = ExtractionCoordinator([_ExtractionBinding(store, config)], model)
    for message in MESSAGES:
        coordinator.record(message)
    await coordinator.flush()
    await store.add_messages(MESSAGES, AddMessagesContext(sequence_numbers=[0, 1]))
    assert said("s") == [("user", "I am allergic to peanuts"), ("assistant", "Noted")]
    await store.initialize()  # another agent, which says the same
    await store.add_messages(MESSAGES[:1], AddMessagesContext(sequence_numbers=[0]))
    assert len(said("s")) == 3


async def test_evaluation_is_no_access(memory: Memory, user: str, touches: Callable[[], int]) -> None:
    store = SiltstoneStore(memory, user_id=user, session_id="s", touch=False)
    await store.search("bees?")
    assert touches() == 0
