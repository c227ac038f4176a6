"""Every method of a client, in one story: a worker answers it, and so does the in-memory Siltstone."""

from __future__ import annotations

import uuid

import pytest

from siltstone_client import AsyncMemory, InvalidRequest, NotFound


async def every_method(memory: AsyncMemory) -> None:
    """The story. The memory is empty before, and after."""
    said = [{"role": "user", "content": "I live in Oslo"}, {"role": "assistant", "content": "Noted"}]
    added = await memory.add(said, user_id="ann", session_id="a/..?", wait=20)
    assert (len(added.accepted), added.applied) == (2, True)
    assert (await memory.search("where does she live?", user_id="ann")).results[0].state == "short_term"
    context = await memory.context(user_id="ann", session_id="a/..?", query="where?")
    assert "Oslo" in context.prompt
    shown = await memory.exchanges(user_id="ann", session_id="a/..?")
    assert [one.content for one in shown.exchanges[0].messages] == ["I live in Oslo", "Noted"]
    assert (await memory.explain(user_id="ann", session_id="a/..?")).decisions
    ids = [
        (await memory.remember(text, user_id="ann", wait=20)).event_id
        for text in ("The key lies under the blue stone", "My sister plays chess")
    ]
    assert (await memory.get(ids[0], user_id="ann")).memory == "The key lies under the blue stone"
    assert (await memory.list(user_id="ann")).total == 2
    await memory.update(ids[0], user_id="ann", text="The key is gone", wait=20)
    assert (await memory.get(ids[0], user_id="ann")).memory == "The key is gone"
    await memory.pin(ids[0], user_id="ann", wait=20)
    assert (await memory.get(ids[0], user_id="ann")).pinned
    profile = await memory.profile(user_id="ann")
    assert [(one.part, one.lines[0].text, one.lines[0].memory_ids) for one in profile.sections] == [
        ("pinned", "The key is gone", [uuid.UUID(ids[0])])
    ]
    context = await memory.context(user_id="ann", session_id="a/..?", profile=True)
    assert context.profile is not None
    assert context.profile.text in context.prompt
    await memory.unpin(ids[0], user_id="ann", wait=20)
    await memory.link(ids[0], ids[1], user_id="ann", weight=0.5, wait=20)
    assert [one.weight for one in (await memory.links(ids[0], user_id="ann")).links] == [0.5]
    assert [str(one.id) for one in (await memory.related(ids[0], user_id="ann")).related] == [ids[1]]
    await memory.unlink(ids[0], ids[1], user_id="ann", wait=20)
    events = [one.event for one in (await memory.history(ids[0], user_id="ann")).events]
    assert events[:4] == ["created", "edited", "pinned", "unpinned"]
    await memory.summarize(user_id="ann", wait=20)
    days = (await memory.summaries(user_id="ann")).days
    if days:
        assert (await memory.summary(days[0].date, user_id="ann")).markdown
    assert (await memory.stats()).total == 2
    token = (await memory.remember("Bees", user_id="ann")).token
    assert (await memory.list(user_id="ann", at_least=token)).total == 3
    await memory.wait_for(token)
    await memory.forget(ids[1], user_id="ann", wait=20)
    with pytest.raises(NotFound):
        await memory.get(ids[1], user_id="ann")
    await memory.end_session(user_id="ann", session_id="a/..?", wait=20)
    await memory.forget_user(user_id="ann", wait=20)
    assert (await memory.list(user_id="ann")).total == 0
    with pytest.raises(InvalidRequest):
        await memory.search("", user_id="ann")
