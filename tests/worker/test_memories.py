"""Long-term memories one by one, over HTTP, on the real broker and shards."""

from __future__ import annotations

import uuid
from functools import partial
from typing import Any

import httpx
import orjson
import pytest

from schemas.memories import Memory
from schemas.times import now_ms
from streams.app import Siltstone
from streams.kafka.bulk import producing
from streams.memory.retention import watermark_at
from tables.analysts.statistics import DAY_MS
from tables.memories.shard import Shard
from tests.support.quick_commands import siltstone
from tests.support.waiting import until_it_is


async def held(worker: Siltstone, user: str) -> tuple[Memory, ...]:
    return await worker.shards.call(worker.context.partition_of(user), Shard.memories_of, user)


async def remember(worker: Siltstone, http: httpx.AsyncClient, user: str, *texts: str, **fields: Any) -> list[str]:
    """The ids of new memories, in the order of the texts."""
    ids = []
    for text in texts:
        body = {"user_id": user, "text": text, **fields}
        ids.append((await http.post("/v1/memories", json=body)).raise_for_status().json()["event_id"])
        await until_held(worker, user, ids[-1])
    return ids


async def until_held(worker: Siltstone, user: str, memory_id: str, there: bool = True) -> None:
    async def as_wanted() -> bool:
        return (uuid.UUID(memory_id) in {memory.id for memory in await held(worker, user)}) is there

    await until_it_is(as_wanted, alive=worker)


async def test_memories_are_listed_page_by_page_with_filters(worker: Siltstone, http: httpx.AsyncClient) -> None:
    colours = ["red apples", "green tea in Kyoto", "the blue bicycle"]
    ids = await remember(worker, http, "ann", *colours, metadata={"tags": ["colour"]}, importance=100)
    ids += await remember(worker, http, "ann", "a dentist on Friday", importance=75)
    first = (await http.get("/v1/memories", params={"user_id": "ann", "limit": 3})).json()
    rest = (await http.get("/v1/memories", params={"user_id": "ann", "after": first["next"]})).json()
    assert [memory["id"] for memory in first["memories"] + rest["memories"]] == ids
    assert (first["total"], rest["next"]) == (4, None)
    wanted = {"user_id": "ann", "filter": ["tags:contains:colour", "importance:gt:75"]}
    assert [m["memory"] for m in (await http.get("/v1/memories", params=wanted)).json()["memories"]] == colours
    wrong = await http.get("/v1/memories", params={"user_id": "ann", "filter": "colour:is:red"})
    assert (wrong.status_code, "a filter is field:operator:value" in wrong.json()["detail"]) == (422, True)


async def test_what_is_another_users_is_not_there(worker: Siltstone, http: httpx.AsyncClient) -> None:
    """By no path, and for nobody who knows its id."""
    (memory_id,) = await remember(worker, http, "ann", "the key lies under the stone")
    (own,) = await remember(worker, http, "bob", "my own thing")
    for method, path in [
        ("GET", f"/v1/memories/{memory_id}"),
        ("PUT", f"/v1/memories/{memory_id}/pin"),
        ("DELETE", f"/v1/memories/{memory_id}/pin"),
    ]:
        assert (await http.request(method, path, params={"user_id": "bob"})).status_code == 404
    link = {"user_id": "bob", "source_id": own, "target_id": memory_id}
    assert (await http.post("/v1/links", json=link)).status_code == 404
    assert (await http.delete("/v1/links", params=link)).status_code == 404
    assert (await http.get("/v1/memories", params={"user_id": "bob"})).json()["total"] == 1
    assert (await http.delete(f"/v1/memories/{memory_id}", params={"user_id": "bob"})).status_code == 202
    await http.delete(f"/v1/memories/{own}", params={"user_id": "bob"})
    await until_held(worker, "bob", own, there=False)
    assert [str(memory.id) for memory in await held(worker, "ann")] == [memory_id]


@pytest.mark.slow
async def test_a_pinned_memory_is_shown_as_such_and_forgotten_all_the_same(
    worker: Siltstone, http: httpx.AsyncClient
) -> None:
    (memory_id,) = await remember(worker, http, "ann", "the key lies under the stone")
    shown = (await http.get(f"/v1/memories/{memory_id}", params={"user_id": "ann"})).json()
    assert (shown["memory"], shown["kind"], shown["pinned"], shown["state"]) == (
        "the key lies under the stone",
        "remember",
        False,
        "active",
    )
    await http.put(f"/v1/memories/{memory_id}/pin", params={"user_id": "ann"})

    async def pinned() -> bool:
        return (await held(worker, "ann"))[0].pinned

    await until_it_is(pinned, alive=worker)
    assert (await http.delete(f"/v1/memories/{memory_id}", params={"user_id": "ann"})).status_code == 202
    await until_held(worker, "ann", memory_id, there=False)
    assert (await http.get(f"/v1/memories/{memory_id}", params={"user_id": "ann"})).status_code == 404


@pytest.mark.slow
async def test_a_user_can_have_everything_forgotten(worker: Siltstone, http: httpx.AsyncClient) -> None:
    *_, last = await remember(worker, http, "ann", "red apples", "green tea in Kyoto")
    assert (await http.delete("/v1/memories", params={"user_id": "ann"})).status_code == 202
    await until_held(worker, "ann", last, there=False)
    assert await held(worker, "ann") == ()


async def history(http: httpx.AsyncClient, user: str, memory_id: str) -> list[dict[str, Any]]:
    found = (await http.get(f"/v1/memories/{memory_id}/history", params={"user_id": user})).raise_for_status()
    return list(found.json()["events"])


async def until_event(http: httpx.AsyncClient, user: str, memory_id: str, event: str) -> dict[str, Any]:
    """The event of a memory's history, when it is in."""
    found: list[dict[str, Any]] = []

    async def there() -> bool:
        found[:] = [one for one in await history(http, user, memory_id) if one["event"] == event]
        return bool(found)

    await until_it_is(there)
    return found[-1]


async def search(http: httpx.AsyncClient, user: str, query: str, **fields: Any) -> list[dict[str, Any]]:
    body = {"user_id": user, "query": query, **fields}
    return list((await http.post("/v1/search", json=body)).raise_for_status().json()["results"])


async def test_an_edited_memory_is_found_by_its_new_words(worker: Siltstone, http: httpx.AsyncClient) -> None:
    """Text is embedded again, metadata merged; the history keeps what was there before."""
    (memory_id,) = await remember(worker, http, "ann", "I keep bees", metadata={"mood": "fine", "place": "Kyoto"})
    change = {"user_id": "ann", "text": "I play the cello", "metadata": {"mood": None, "since": 2020}}
    assert (await http.patch(f"/v1/memories/{memory_id}", json=change)).status_code == 202
    before = (await until_event(http, "ann", memory_id, "edited"))["details"]["before"]
    assert before == {"text": "I keep bees", "metadata": {"mood": "fine", "since": None}}
    (hit,) = await search(http, "ann", "Who plays the cello?", min_relevance=0.5)
    assert (hit["id"], hit["metadata"]) == (memory_id, {"place": "Kyoto", "since": 2020})
    assert await search(http, "ann", "bees", min_relevance=0.5) == []
    for wrong, code in [({"user_id": "bob", "text": "mine"}, 404), ({"user_id": "ann"}, 422)]:
        assert (await http.patch(f"/v1/memories/{memory_id}", json=wrong)).status_code == code


async def test_what_is_replaced_is_kept_out_of_default_results(worker: Siltstone, http: httpx.AsyncClient) -> None:
    (old,) = await remember(worker, http, "ann", "I live in Lyon")
    (new,) = await remember(worker, http, "ann", "I live in Osaka now", supersedes=[old])
    await until_event(http, "ann", old, "superseded")
    assert [hit["id"] for hit in await search(http, "ann", "Where do I live?")] == [new]
    marked = {
        hit["id"]: hit["superseded_by"] for hit in await search(http, "ann", "Where do I live?", includeAll=True)
    }
    assert marked == {old: new, new: None}
    assert (await until_event(http, "ann", new, "supersedes"))["details"]["memory_id"] == old
    other = {"user_id": "bob", "text": "Bob was here", "supersedes": [new]}
    assert (await http.post("/v1/memories", json=other)).status_code == 404
    back = {"user_id": "ann", "by": old}
    assert (await http.post(f"/v1/memories/{new}/supersede", json=back)).status_code == 202
    await until_event(http, "ann", new, "superseded")
    assert [hit["id"] for hit in await search(http, "ann", "Where do I live?")] == [old]


async def test_related_memories_are_linked_ones_and_those_that_resemble(
    worker: Siltstone, http: httpx.AsyncClient
) -> None:
    """Each once, marked, from both ends of a link."""
    tea, more_tea, bees = await remember(
        worker, http, "ann", "I drink green tea every morning", "Green tea is what I drink", "My uncle keeps bees"
    )
    link = {"user_id": "ann", "source_id": bees, "target_id": tea, "kind": "cause", "weight": 0.4}
    assert (await http.post("/v1/links", json=link)).status_code == 202

    async def related(memory_id: str) -> list[dict[str, Any]]:
        found = await http.get(f"/v1/memories/{memory_id}/related", params={"user_id": "ann"})
        return list(found.raise_for_status().json()["related"])

    async def linked() -> bool:
        return any(one["relation"] == "explicit" for one in await related(tea))

    await until_it_is(linked, alive=worker)
    shown = [(one["id"], one["relation"], one["kind"], one["direction"]) for one in await related(tea)]
    assert shown == [(bees, "explicit", "cause", "in"), (more_tea, "semantic", None, None)]
    (back,) = [one for one in await related(bees) if one["relation"] == "explicit"]
    assert (back["id"], back["weight"], back["direction"]) == (tea, 0.4, "out")
    gone = {"user_id": "ann", "source_id": bees, "target_id": tea, "kind": "cause"}
    assert (await http.delete("/v1/links", params=gone)).status_code == 202
    await until_it_is(lambda: unlinked(http, tea), alive=worker)
    assert (await http.get(f"/v1/memories/{tea}/related", params={"user_id": "bob"})).status_code == 404
    assert (await http.get(f"/v1/memories/{tea}/links", params={"user_id": "bob"})).status_code == 404


async def unlinked(http: httpx.AsyncClient, memory_id: str) -> bool:
    found = await http.get(f"/v1/memories/{memory_id}/links", params={"user_id": "ann"})
    return not found.raise_for_status().json()["links"]


async def test_filters_come_before_the_ranking(worker: Siltstone, http: httpx.AsyncClient) -> None:
    """The one best answer that may be given is given, however many better ones may not."""
    texts = [f"I drink tea number {n} in the garden" for n in range(5)]
    await remember(worker, http, "ann", *texts, session_id="s1", importance=90)
    (other,) = await remember(worker, http, "ann", "my bicycle is blue", session_id="s2", importance=75, topic="bike")
    for filters in (["session:eq:s2"], {"session_id": "s2"}, {"importance": {"lt": 80}}, {"topic": "bike"}):
        found = await search(http, "ann", "Which tea do I drink?", top_k=1, filters=filters)
        assert [(hit["id"], hit["topic"]) for hit in found] == [(other, "bike")]
    wrong = {"user_id": "ann", "query": "tea", "filters": {"colour": "red"}}
    answer = await http.post("/v1/search", json=wrong)
    assert (answer.status_code, "the field is one of" in answer.text) == (422, True)


async def test_a_search_sees_the_states_that_it_asks_for_and_marks_them(
    worker: Siltstone, http: httpx.AsyncClient
) -> None:
    """Active ones by default; the most relevant come first, whatever they score."""
    texts = ("I drink tea", "Green tea from Kyoto is what I like best", "Tea in Osaka")
    for text, importance in zip(texts, (90, 50, 10), strict=True):
        await remember(worker, http, "ann", text, importance=importance)

    async def states(**asked: Any) -> dict[str, str]:
        hits = await search(http, "ann", "green tea from Kyoto", touch=False, **asked)
        assert [hit["relevance"] for hit in hits] == sorted((hit["relevance"] for hit in hits), reverse=True)
        return {hit["memory"]: hit["state"] for hit in hits}

    active, cold, deprecated = zip(texts, ("active", "cold", "deprecated"), strict=True)
    assert await states() == dict([active])
    assert await states(includeCold=True) == dict([active, cold])
    everything = await states(includeAll=True)
    assert everything == dict([active, cold, deprecated])
    assert next(iter(everything)) == texts[1]
    assert await states(state="cold") == dict([cold])
    assert await states(state="deprecated", include_cold=True) == dict([deprecated])


async def test_an_access_counts_once_for_each_answer(worker: Siltstone, http: httpx.AsyncClient) -> None:
    (memory_id,) = await remember(worker, http, "ann", "I drink green tea", importance=80)
    for _ in range(3):
        assert len(await search(http, "ann", "tea")) == 1

    async def counted() -> bool:
        return (await held(worker, "ann"))[0].access_count >= 3

    await until_it_is(counted, alive=worker)
    asked = {"user_id": "ann", "touch": "false"}
    shown = (await http.get(f"/v1/memories/{memory_id}", params=asked)).json()
    assert (shown["access_count"], shown["importance"]) == (3, 86)


async def test_reading_a_memory_is_an_access_unless_it_says_otherwise(
    worker: Siltstone, http: httpx.AsyncClient
) -> None:
    (memory_id,) = await remember(worker, http, "ann", "I drink green tea", importance=80)
    for touch in ("false", "true", "false"):
        asked = {"user_id": "ann", "touch": touch}
        assert (await http.get(f"/v1/memories/{memory_id}", params=asked)).json()["id"] == memory_id
    await http.get("/v1/memories", params={"user_id": "ann"})

    async def counted() -> bool:
        return (await held(worker, "ann"))[0].access_count > 0

    await until_it_is(counted, alive=worker)
    (memory,) = await held(worker, "ann")
    assert (memory.access_count, memory.importance) == (1, 82)


async def test_what_is_no_answer_or_asked_without_touch_is_no_access(
    worker: Siltstone, http: httpx.AsyncClient
) -> None:
    """All of it is returned. The access that does count comes last, and tells that the others were none."""
    ids = await remember(worker, http, "ann", "I drink green tea", "The printer is out of paper", importance=80)
    no_touch = ("--user", "ann", "--url", f"http://127.0.0.1:{worker.api.port}", "--no-touch", "--json")
    body = {"user_id": "ann", "query": "tea", "touch": False}
    for _ in range(2):
        assert len((await http.post("/v1/search", json=body)).raise_for_status().json()["results"]) == 2
        asked = {"user_id": "ann", "session_id": "s", "q": "tea", "touch": "false"}
        assert len((await http.get("/v1/context", params=asked)).raise_for_status().json()["memories"]) == 2
    for words in (("search", "tea"), ("context", "tea", "--session", "s")):
        ran = await siltstone(*words, *no_touch)
        assert (ran.returncode, ran.stderr) == (0, "")
    found = {hit["id"]: hit["relevance"] for hit in await search(http, "ann", "tea")}
    least = worker.settings.lifecycle.access_min_relevance
    assert [found[one] >= least for one in ids] == [True, False]

    async def counted() -> bool:
        return any(memory.access_count for memory in await held(worker, "ann"))

    await until_it_is(counted, alive=worker)
    shown = {str(memory.id): (memory.access_count, memory.importance) for memory in await held(worker, "ann")}
    assert [shown[one] for one in ids] == [(1, 82), (0, 80)]


@pytest.mark.slow
async def test_a_near_copys_id_means_the_memory_that_it_went_into(worker: Siltstone, http: httpx.AsyncClient) -> None:
    (first,) = await remember(worker, http, "ann", "I drink green tea every morning")
    body = {"user_id": "ann", "text": "I drink green tea every morning"}
    copy = (await http.post("/v1/memories", json=body)).json()["event_id"]
    assert (await until_event(http, "ann", first, "merged"))["details"]["memory_id"] == copy
    assert (await http.get(f"/v1/memories/{copy}", params={"user_id": "ann"})).json()["id"] == first
    await http.delete(f"/v1/memories/{copy}", params={"user_id": "ann"})
    await until_held(worker, "ann", first, there=False)


async def test_who_is_forgotten_is_not_in_the_windows_either(worker: Siltstone, http: httpx.AsyncClient) -> None:
    """Nor is what was undecided promoted at the session's end; what is said afterwards stays."""
    said = {"user_id": "ann", "session_id": "s", "role": "user", "content": "请记住 my key lies under the stone"}
    await http.post("/v1/messages", json={**said, "content": "My name is Ann and I love bees", "emotion": "sad"})
    await http.post("/v1/messages", json={**said, "role": "assistant", "content": "Nice to meet you"})
    context = {"user_id": "ann", "session_id": "s"}

    async def window() -> list[str]:
        shown = (await http.get("/v1/sessions/s/exchanges", params=context)).json()["exchanges"]
        return [message["content"] for exchange in shown for message in exchange["messages"]]

    async def heard() -> bool:
        return len(await window()) == 2

    await until_it_is(heard, alive=worker)
    assert (await http.delete("/v1/memories", params={"user_id": "ann"})).status_code == 202

    async def emptied() -> bool:
        return not await window()

    await until_it_is(emptied, alive=worker)
    await http.post("/v1/messages", json={**said, "content": "Please remember that I moved to Osaka"})
    await http.post("/v1/messages", json={**said, "role": "assistant", "content": "Noted"})
    await http.post("/v1/messages", json={**said, "session_id": "t", "content": "hello"})

    async def moved() -> bool:
        return len(await window()) == 2

    await until_it_is(moved, alive=worker)
    async with producing(worker.settings.kafka) as producer:
        end = {"type": "session_end", "user_id": "ann", "session_id": "s", "timestamp": now_ms()}
        await producer.send(b"ann", orjson.dumps(end))

    async def kept() -> bool:
        return [memory.text for memory in await held(worker, "ann")] == [
            "Please remember that I moved to Osaka\nNoted"
        ]

    await until_it_is(kept, alive=worker)


async def test_a_watermark_is_read_from_the_log_itself(
    worker: Siltstone, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A week later ids are dropped. Of what the log does not hold there is none, and another record makes another."""
    await remember(worker, http, "ann", "green tea", "red apples")
    partition, started = worker.context.partition_of("ann"), now_ms()
    for days in range(9):
        monkeypatch.setattr(worker.jobs.retention, "_now", partial(int, started + days * DAY_MS))
        await worker.jobs.retention.tick()
    low = await worker.shards.call(partition, lambda shard: shard.watermarks.low())
    assert low is not None
    assert low.offset == await worker.shards.call(partition, Shard.position) == 2
    read = worker.jobs.retention._read
    assert await watermark_at(read, partition, 2) == low
    assert await watermark_at(read, partition, 1) not in (None, low)
    assert await watermark_at(read, partition, 50) is None
    before = await held(worker, "ann")
    records = [record async for batch in read(partition, 0, 2) for record in batch]
    await worker.long_term._write(partition, records)
    assert await held(worker, "ann") == before


async def test_an_edit_that_brings_metadata_beyond_what_a_record_may_have_is_refused(
    worker: Siltstone, http: httpx.AsyncClient
) -> None:
    (memory_id,) = await remember(worker, http, "ann", "green tea", metadata={"first": "x" * 20_000})
    url, more = f"/v1/memories/{memory_id}", {"second": "x" * 20_000}
    refused = await http.patch(url, json={"user_id": "ann", "metadata": more})
    assert (refused.status_code, "metadata" in refused.json()["detail"]) == (422, True)
    taken = await http.patch(url, json={"user_id": "ann", "metadata": {**more, "first": None}})
    assert taken.status_code == 202
