"""The store beside `InMemoryStore`: whatever is done to both, they say the same."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from langgraph.store.base import GetOp, Item, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from siltstone_client import InvalidRequest, Memory
from siltstone_client.langgraph import SiltstoneStore

LABELS = st.sampled_from(["a", "b", "a/b", "a%2Fb", "用户", "*x", '"'])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
PREFIXES = st.lists(LABELS, max_size=2).map(tuple)
KEYS = st.sampled_from(["k", "k/1", "键", "", "K"])
NUMBERS = st.integers(-3, 3) | st.sampled_from([0.5, -0.25, 2**53 - 1, 1e-300])
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
JSON = st.recursive(SCALARS, lambda below: st.lists(below, max_size=2) | st.dictionaries(KEYS, below, max_size=2),
                    max_leaves=4)  # fmt: skip
VALUES = st.fixed_dictionaries({"n": NUMBERS}, optional={"s": SCALARS, "j": JSON, "promotion": JSON, "stored": JSON})
COMPARISONS = st.dictionaries(st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]), NUMBERS, min_size=1)
FILTERS = st.none() | st.fixed_dictionaries({}, optional={"n": NUMBERS | COMPARISONS, "s": SCALARS, "j": JSON})
DEPTHS = st.none() | st.integers(1, 3)
PATTERNS = st.lists(LABELS | st.just("*"), min_size=1, max_size=2).map(tuple)


def plain(items: list[Any]) -> list[tuple[Any, ...]]:
    """Without times and scores, in an order of their own: stores have each another."""
    return sorted((one.namespace, one.key, repr(one.value)) for one in items)


class Beside(RuleBasedStateMachine):
    """Puts, deletions and reads of both stores, alone and in batches."""

    memory: Memory

    def __init__(self) -> None:
        super().__init__()
        self.store = SiltstoneStore(self.memory, user_id=f"store-{uuid.uuid4().hex}")
        self.oracle = InMemoryStore()

    def both(self, *ops: Any) -> None:
        ours: list[Any] = self.store.batch(ops)
        theirs: list[Any] = self.oracle.batch(ops)
        for op, our, their in zip(ops, ours, theirs, strict=True):
            if isinstance(op, SearchOp):
                assert plain(our) == plain(their), op
            elif isinstance(op, GetOp):
                assert (our is None) == (their is None), op
                if our is not None:
                    assert (our.namespace, our.key, our.value) == (their.namespace, their.key, their.value)
                    assert repr(our.value) == repr(their.value)
                    assert our.created_at == our.updated_at
            else:
                assert our == their, op
        # It keeps a namespace without items, also one that was only asked for.
        for empty in [namespace for namespace, items in self.oracle._data.items() if not items]:
            del self.oracle._data[empty]

    @rule(namespace=NAMESPACES, key=KEYS, value=VALUES)
    def put(self, namespace: Any, key: str, value: Any) -> None:
        self.both(PutOp(namespace, key, value))

    @rule(namespace=NAMESPACES, key=KEYS)
    def get(self, namespace: Any, key: str) -> None:
        self.both(GetOp(namespace, key))

    @rule(namespace=NAMESPACES, key=KEYS)
    def delete(self, namespace: Any, key: str) -> None:
        self.both(PutOp(namespace, key, None))

    @rule(prefix=PREFIXES, chosen=FILTERS)
    def search(self, prefix: Any, chosen: Any) -> None:
        self.both(SearchOp(prefix, chosen, limit=1000))

    @rule(prefix=PREFIXES, suffix=PATTERNS, depth=DEPTHS, patterned=PATTERNS)
    def namespaces(self, prefix: Any, suffix: Any, depth: Any, patterned: Any) -> None:
        self.both(
            ListNamespacesOp(max_depth=depth, limit=1000),
            ListNamespacesOp((MatchCondition("prefix", prefix),), depth, limit=2, offset=1),
            ListNamespacesOp((MatchCondition("prefix", patterned), MatchCondition("suffix", suffix)), depth),
        )

    @rule(puts=st.lists(st.tuples(NAMESPACES, KEYS, st.none() | VALUES), max_size=4), prefix=PREFIXES, key=KEYS)
    def batch(self, puts: Any, prefix: Any, key: str) -> None:
        """Reads of a batch see what was there before it."""
        writes = [PutOp(*one) for one in puts]
        reads = [GetOp(one[0], key) for one in puts]
        self.both(*writes, SearchOp(prefix, limit=1000), ListNamespacesOp(limit=1000), *reads)


def test_whatever_is_done_they_say_the_same(memory: Memory) -> None:
    machine = type("Machine", (Beside,), {"memory": memory})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=20,
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.explicit, Phase.reuse, Phase.generate),  # to shrink would take minutes
        ),
    )


@pytest.fixture
def store(memory: Memory, user: str) -> SiltstoneStore:
    return SiltstoneStore(memory, user_id=user)


def test_pages_are_parts_of_the_whole(store: SiltstoneStore) -> None:
    for number in range(5):
        store.put(("a",), str(number), {"n": number})
    pages = [store.search(("a",), limit=2, offset=offset) for offset in (0, 2, 4, 6)]
    assert [[one.key for one in page] for page in pages] == [["0", "1"], ["2", "3"], ["4"], []]


def test_a_query_ranks_by_meaning_within_filter_and_namespace(store: SiltstoneStore) -> None:
    store.put(("notes",), "1", {"text": "Ann is allergic to peanuts", "kind": "health"})
    store.put(("notes",), "2", {"text": "Ann's sister plays chess", "kind": "family"})
    store.put(("other",), "3", {"text": "Peanuts cause allergies", "kind": "health"})
    found = store.search(("notes",), query="what food must she avoid, allergy?")
    assert [one.key for one in found] == ["1", "2"]
    assert found[0].score is not None
    assert found[1].score is not None
    assert found[0].score > found[1].score
    assert [one.key for one in store.search((), query="allergic to peanuts", filter={"kind": "family"})] == ["2"]
    assert [one.key for one in store.search((), query="peanuts", limit=1, offset=1)] != []


def test_near_copies_stay_apart_and_a_put_replaces(store: SiltstoneStore) -> None:
    for key in "ab":
        store.put(("n",), key, {"text": "the very same"})
    store.put(("n",), "a", {"text": "the very same", "more": 1})
    assert len(store.search(("n",))) == 2
    found = store.get(("n",), "a")
    assert found is not None
    assert found.value == {"text": "the very same", "more": 1}


def test_times_are_those_of_the_newest_put(store: SiltstoneStore) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    store.put(("t",), "k", {"n": 1})
    first = store.get(("t",), "k")
    store.put(("t",), "k", {"n": 2})
    second = store.get(("t",), "k")
    assert isinstance(first, Item)
    assert isinstance(second, Item)
    assert before <= first.created_at <= second.created_at == second.updated_at


def test_index_names_what_a_search_finds_it_by(store: SiltstoneStore, memory: Memory, user: str) -> None:
    store.put(("i",), "k", {"title": "Bees", "body": {"text": "honey"}}, index=["title", "body.text"])
    store.put(("i",), "hidden", {"title": "Wasps"}, index=False)
    texts = {one.metadata["key"]: one.memory for one in memory.list(user_id=user).memories}
    assert texts == {"k": "Bees\nhoney", "hidden": "hidden"}


def pass_time(memory: Memory, until: datetime) -> None:
    """The worker's clock is the newest event's."""
    memory.remember("it is late", user_id="clock", timestamp=until, wait=30)


def test_what_expires_is_gone_and_a_read_begins_its_time_anew(
    store: SiltstoneStore, memory: Memory, user: str
) -> None:
    store.put(("ttl",), "short", {"n": 1}, ttl=1)
    store.put(("ttl",), "long", {"n": 2}, ttl=10_000_000)
    store.put(("ttl",), "ever", {"n": 3})
    shown = {one.metadata["key"]: one for one in memory.list(user_id=user).memories}
    assert shown["short"].metadata["stored"]["ttl_seconds"] == 60
    assert store.get(("ttl",), "short", refresh_ttl=False) is not None
    expiry = datetime.fromisoformat(shown["short"].metadata["stored"]["expires_at"])
    pass_time(memory, expiry)
    assert store.get(("ttl",), "short") is None
    assert sorted(one.key for one in store.search(("ttl",))) == ["ever", "long"]
    assert sorted(one.key for one in store.search(("ttl",), query="short")) == ["ever", "long"]
    assert store.list_namespaces() == [("ttl",)]


def test_one_store_may_be_of_several_users(memory: Memory, user: str) -> None:
    store = SiltstoneStore(memory, user_id=lambda namespace: f"{user}-{namespace[1]}")
    store.put(("memories", "ann"), "k", {"n": 1})
    store.put(("memories", "bob"), "k", {"n": 2})
    assert [one.value for one in store.search(("memories", "bob"))] == [{"n": 2}]
    assert store.list_namespaces(prefix=("memories", "ann")) == [("memories", "ann")]
    assert memory.list(user_id=f"{user}-ann").total == 1
    with pytest.raises(IndexError):
        store.search(("memories",))


async def test_from_asyncio(store: SiltstoneStore) -> None:
    await store.aput(("async",), "k", {"n": 1})
    found = await store.aget(("async",), "k")
    assert found is not None
    assert found.value == {"n": 1}
    await store.adelete(("async",), "k")
    assert await store.asearch(("async",)) == []


def test_a_value_that_cannot_be_kept_is_refused(store: SiltstoneStore) -> None:
    with pytest.raises(InvalidRequest):
        store.put(("big",), "k", {"text": "x" * 40_000})
    with pytest.raises(TypeError):
        store.put(("odd",), "k", {"when": datetime.now(UTC)})
    with pytest.raises(InvalidRequest, match=r"\$near"):
        store.search(("a",), filter={"n": {"$near": 3}})
    assert store.list_namespaces() == []
