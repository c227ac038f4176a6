"""When a user has too many memories is counted: a look at all of them is taken only where some may give way."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from schemas.events import Forget, LongTermEvent, Pin, Promotion, Supersede, Unpin
from schemas.settings import LifecycleSettings, LongTermSettings
from streams.models.embedding.embedders import UseEmbedder
from tables.memories.catalog.reembedding import VectorModel
from tables.memories.shard import Shard
from tests.support.calls import Statements
from tests.support.making import START, axis, leaning, promotion
from tests.tables.commands import event

LIMIT = 10


@pytest.fixture
def counted() -> Statements:
    return Statements()


@pytest.fixture
def shard(tmp_path: Path, counted: Statements) -> Iterator[Shard]:
    settings = LongTermSettings(max_memories_per_user=LIMIT)
    with counted.counted():
        made = Shard(0, tmp_path, "toy", 8, settings, LifecycleSettings())
    yield made
    made.close()


def said(*numbers: int, user: str = "u") -> list[Promotion]:
    """Texts that are no near-copies of each other."""
    return [promotion(f"text {n}", f"m{n}", user=user, at=START + n) for n in numbers]


def apply(shard: Shard, events: Sequence[LongTermEvent]) -> dict[str, int]:
    texts = [one for one in events if isinstance(one, Promotion)]
    places = [int(one.text.split()[-1]) for one in texts]
    vectors = {
        one.event_id: leaning(n % 4, 4 + n // 4 % 4, 0.9 - n // 16 * 0.2)
        for one, n in zip(texts, places, strict=True)
    }
    return shard.apply(events, vectors, START).effects()


def cost(shard: Shard, counted: Statements, memory: Promotion) -> int:
    """SQL statements that one more memory takes."""
    before = counted.total
    assert apply(shard, [memory]) == {"new": 1}
    return counted.total - before


def test_a_memory_beside_replaced_ones_costs_no_statement_more(shard: Shard, counted: Statements) -> None:
    """Of eleven memories nine are current: the twelfth is no reason to look at them, nor are those after it."""
    plain = cost(shard, counted, said(0)[0])
    old = said(*range(1, LIMIT))
    apply(shard, old)
    for older, newer in itertools.pairwise(old[:4]):
        apply(shard, [event(Supersede, memory_id=older.memory_id, by=newer.memory_id)])
    assert [cost(shard, counted, one) for one in said(10, 11, 12)] == [plain] * 3


def test_a_memory_beside_those_that_were_summed_up_costs_no_statement_more(shard: Shard, counted: Statements) -> None:
    plain = cost(shard, counted, said(0)[0])
    assert apply(shard, said(*range(1, LIMIT + 1)))["summarized"] == 1
    held = shard.memories_of("u")
    room = LIMIT - sum(memory.current for memory in held)
    assert len(held) > LIMIT
    assert room > 0
    assert [cost(shard, counted, one) for one in said(*range(16, 16 + room))] == [plain] * room


@pytest.mark.slow
def test_a_memory_beside_pinned_ones_that_are_too_many_costs_no_statement_more(
    shard: Shard, counted: Statements
) -> None:
    """Nothing can give way: one memory alone makes no group."""
    plain = cost(shard, counted, said(0)[0])
    apply(shard, [event(Pin, memory_id=said(0)[0].memory_id)])
    for one in said(*range(1, LIMIT)):
        apply(shard, [one])
        apply(shard, [event(Pin, memory_id=one.memory_id)])
    assert cost(shard, counted, said(16)[0]) == plain


TALK = {
    "roses": ("I planted roses in the garden.", "My roses have black spots.", "I cut the roses back in March."),
    "bicycle": ("My bicycle has a flat tyre.", "I ride my bicycle to work.", "The bicycle chain broke again."),
    "cat": ("My cat Mimi is ill.", "I take the cat to the vet on Friday.", "My cat eats only fish."),
    "soup": ("I cooked lentil soup.", "The soup was too salty.", "I like tomato soup best."),
}


@pytest.mark.slow
def grouped(shard: Shard, cosine: float, text: str) -> int:
    """The members of the summary that is made of the two oldest of eleven memories, or of the nearest two."""
    events = [promotion(f"{text} {n}", f"m{n}", at=START + n) for n in range(LIMIT + 1)]
    # The first is along axis 0; each other one has this cosine with it, and its square with the rest.
    vectors = [axis(0, 16), *(leaning(0, n, cosine, 16) for n in range(1, LIMIT + 1))]
    applied = shard.apply(events, {one.event_id: v for one, v in zip(events, vectors, strict=True)}, START)
    assert applied.summarized == 1
    return max(len(memory.summary_of) for memory in shard.memories_of("u"))


@pytest.mark.parametrize(
    ("model", "set_to", "cosine", "text", "members"),
    [
        ("use-multilingual-v3", None, 0.85, "text", 8),
        ("another", None, 0.5, "text", 8),
        ("multilingual-e5-small-q4", None, 0.85, "text", 2),
        ("multilingual-e5-small-q4", None, 0.885, "text", 8),
        ("multilingual-e5-small-q4", None, 0.885, "我喝茶", 2),
        ("multilingual-e5-small-q4", None, 0.92, "我喝茶", 8),
        ("multilingual-e5-small-q4", 0.8, 0.85, "我喝茶", 8),
        ("use-multilingual-v3", 0.9, 0.85, "text", 2),
    ],
)
def test_what_is_similar_depends_on_the_model(
    tmp_path: Path, model: str, set_to: float | None, cosine: float, text: str, members: int
) -> None:
    """For `e5` unrelated memories have a cosine of 0.85; a number in the settings is the same for all models."""
    settings = LongTermSettings(max_memories_per_user=LIMIT, group_cosine=set_to)
    shard = Shard(0, tmp_path, model, 16, settings, LifecycleSettings())
    try:
        assert grouped(shard, cosine, text) == members
    finally:
        shard.close()


def test_what_is_similar_follows_a_change_of_the_model(tmp_path: Path) -> None:
    """Without a new start."""
    e5 = VectorModel("multilingual-e5-small-q4", 16)
    settings = LongTermSettings(max_memories_per_user=LIMIT)
    shard = Shard(0, tmp_path, "use-multilingual-v3", 16, settings, LifecycleSettings())
    try:
        shard.reembedding.begin(e5)
        assert shard.adopt(shard.index_beside(16))
        assert grouped(shard, 0.85, "text") == 2
    finally:
        shard.close()


def test_what_is_summed_up_together_is_about_the_same(tmp_path: Path) -> None:
    """Roses, a bicycle, a cat and soup, said in turn, with the embedded model: no summary has two of them."""
    texts = [text for turn in zip(*TALK.values(), strict=True) for text in turn]
    told = [promotion(text, f"m{n}", at=START + n) for n, text in enumerate(texts)]
    embedder = UseEmbedder()
    vectors = dict(zip((one.event_id for one in told), embedder.embed(texts, "document"), strict=True))
    settings = LongTermSettings(max_memories_per_user=6)
    shard = Shard(0, tmp_path, "use", embedder.dimension, settings, LifecycleSettings())
    shard.apply(told, vectors, START)
    held = shard.memories_of("u")
    shard.close()
    wholes = [memory for memory in held if memory.kind == "summary"]
    assert sum(memory.current for memory in held) <= 6
    assert len(wholes) >= 3
    assert all(sum(word in whole.text for word in TALK) == 1 for whole in wholes)


@pytest.mark.slow
@pytest.mark.parametrize("together", [True, False])
def test_what_holds_again_counts_again(shard: Shard, together: bool) -> None:
    """A successor is forgotten, and a pin taken back: the next memory is one too many, in the same batch or not."""
    old = said(*range(LIMIT + 1))
    apply(shard, old[:LIMIT])
    apply(shard, [event(Supersede, memory_id=old[0].memory_id, by=old[1].memory_id)])
    apply(shard, [event(Supersede, memory_id=old[2].memory_id, by=old[3].memory_id)])
    apply(shard, [event(Pin, memory_id=one.memory_id) for one in old[:LIMIT]])
    apply(shard, [old[LIMIT]])
    apply(shard, said(16))
    back: list[LongTermEvent] = [
        event(Forget, memory_id=old[1].memory_id),
        event(Forget, memory_id=old[3].memory_id),
        *(event(Unpin, memory_id=one.memory_id) for one in (*old[:1], old[2], *old[4:LIMIT])),
    ]
    more = said(17)
    effects = [apply(shard, [*back, *more])] if together else [apply(shard, back), apply(shard, more)]
    assert effects[-1]["summarized"] == 1
