"""Whose texts a model works on next, at a model that answers when the test says so."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from schemas.errors import SiltstoneError
from streams.models.embedding.embedders import Side, Vectors
from streams.models.embedding.lanes import MOST_DEATHS, QUESTIONS_IN_A_ROW, SLICE, UNDER_WAY, Lanes
from streams.runtime.called_process import ProcessDied


class Model:
    """A text's vector is its number: `t7` has 7. Some texts it refuses, or dies of."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.sides: list[Side] = []
        self.waiting: list[asyncio.Event] = []
        self.refused: set[str] = set()
        self.deadly: set[str] = set()
        self.at_once = False

    async def __call__(self, texts: list[str], of: Side) -> Vectors:
        self.calls.append(texts)
        self.sides.append(of)
        if not self.at_once:
            self.waiting.append(go := asyncio.Event())
            await go.wait()
        if self.deadly.intersection(texts):
            raise ProcessDied
        if bad := self.refused.intersection(texts):
            raise SiltstoneError(f"cannot embed {min(bad)}")
        return np.array([[int(text[1:])] for text in texts], np.float32)

    async def answer(self) -> None:
        """The oldest call is answered."""
        self.waiting.pop(0).set()
        await settled()

    async def answer_all(self) -> None:
        self.at_once = True
        for go in self.waiting:
            go.set()
        await settled()


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def said(count: int, first: int = 0) -> list[str]:
    return [f"t{first + i}" for i in range(count)]


def numbers(vectors: Vectors) -> list[int]:
    return [int(number) for (number,) in vectors]


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def lanes(model: Model) -> Lanes:
    return Lanes(model)


async def asked(
    lanes: Lanes, texts: list[str], of: Side = "document", *, urgent: bool = False
) -> asyncio.Task[Vectors]:
    task = asyncio.ensure_future(lanes.embed(texts, of, urgent=urgent))
    await settled()
    return task


async def test_bulk_goes_in_small_calls_of_which_few_are_under_way(lanes: Lanes, model: Model) -> None:
    """A question waits for no more texts than those."""
    bulk = await asked(lanes, said(100))
    assert [len(call) for call in model.calls] == [SLICE] * UNDER_WAY
    assert SLICE * UNDER_WAY <= 32
    await model.answer_all()
    assert numbers(await bulk) == list(range(100))
    assert max(map(len, model.calls)) == SLICE


async def test_a_question_goes_before_all_bulk_that_is_not_under_way(lanes: Lanes, model: Model) -> None:
    bulk = await asked(lanes, said(100))
    question = await asked(lanes, ["t500"], urgent=True)
    await model.answer()
    assert model.calls[UNDER_WAY] == ["t500"]
    await model.answer_all()
    assert numbers(await question) == [500]
    assert numbers(await bulk) == list(range(100))


async def test_who_waits_together_goes_in_one_call(lanes: Lanes, model: Model) -> None:
    first = await asked(lanes, said(2 * SLICE))
    waiting = [await asked(lanes, said(2, first), urgent=True) for first in (100, 200, 300)]
    await model.answer()
    assert model.calls[-1] == ["t100", "t101", "t200", "t201", "t300", "t301"]
    await model.answer_all()
    assert [numbers(await task) for task in waiting] == [[100, 101], [200, 201], [300, 301]]
    assert numbers(await first) == list(range(2 * SLICE))


async def test_a_call_has_questions_or_documents(lanes: Lanes, model: Model) -> None:
    """Never both, also where both wait in the same lane: they may get different prefixes."""
    first = await asked(lanes, said(2 * SLICE))
    waiting = [
        await asked(lanes, ["t100"], "question", urgent=True),
        await asked(lanes, ["t200"], "question", urgent=True),
        await asked(lanes, ["t300"], "document", urgent=True),
        await asked(lanes, ["t400"], "question", urgent=True),
    ]
    await model.answer_all()
    assert [numbers(await task) for task in waiting] == [[100], [200], [300], [400]]
    assert list(zip(model.sides, model.calls, strict=True))[UNDER_WAY:] == [
        ("question", ["t100", "t200"]),
        ("document", ["t300"]),
        ("question", ["t400"]),
    ]
    assert numbers(await first) == list(range(2 * SLICE))


async def test_a_long_list_holds_up_no_short_one(lanes: Lanes, model: Model) -> None:
    long = await asked(lanes, said(1000))
    short = await asked(lanes, ["t5000"])
    for _ in range(UNDER_WAY + 1):
        await model.answer()
    assert any("t5000" in call for call in model.calls[: UNDER_WAY + 2])
    await model.answer_all()
    assert numbers(await short) == [5000]
    assert numbers(await long) == list(range(1000))


async def test_many_questions_do_not_end_the_progress_of_bulk(lanes: Lanes, model: Model) -> None:
    bulk = await asked(lanes, said(1000))
    questions = [await asked(lanes, said(SLICE, i * SLICE), urgent=True) for i in range(3 * QUESTIONS_IN_A_ROW)]
    before = len(model.calls)
    for _ in range(2 * QUESTIONS_IN_A_ROW + 2):
        await model.answer()
    assert (
        sum("t" + str(SLICE * UNDER_WAY) in call for call in model.calls[before:]) == 2
    )  # one question, one of bulk
    await model.answer_all()
    await asyncio.gather(bulk, *questions)


async def test_a_caller_who_goes_takes_nobody_along(lanes: Lanes, model: Model) -> None:
    """Neither those with whom it shares a call, nor those that wait behind it; and it is not worked for any more."""
    first = await asked(lanes, said(2 * SLICE))
    goes, stays = await asked(lanes, ["t100"]), await asked(lanes, ["t200"])
    await model.answer()
    assert model.calls[-1] == ["t100", "t200"]
    waits, later = await asked(lanes, ["t300"]), await asked(lanes, ["t400"])
    for task in (goes, waits):
        task.cancel()
    await model.answer_all()
    assert [numbers(await task) for task in (stays, later)] == [[200], [400]]
    assert numbers(await first) == list(range(2 * SLICE))
    assert not any("t300" in call for call in model.calls)


async def test_a_caller_who_goes_stops_the_rest_of_its_texts(lanes: Lanes, model: Model) -> None:
    task = await asked(lanes, said(1000))
    task.cancel()
    await model.answer_all()
    assert len(model.calls) == UNDER_WAY


async def test_a_text_that_cannot_be_embedded_fails_its_caller_alone(lanes: Lanes, model: Model) -> None:
    model.refused.add("t200")
    first = await asked(lanes, said(2 * SLICE))
    tasks = [await asked(lanes, texts) for texts in (["t100"], ["t200", "t201"], ["t300"])]
    await model.answer_all()
    good, bad, other = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(bad, SiltstoneError)
    assert str(bad) == "cannot embed t200"
    assert isinstance(good, np.ndarray)
    assert isinstance(other, np.ndarray)
    assert (numbers(good), numbers(other)) == ([100], [300])
    assert numbers(await first) == list(range(2 * SLICE))


async def test_a_failed_list_is_worked_on_no_further(lanes: Lanes, model: Model) -> None:
    model.refused.add("t0")
    task = await asked(lanes, said(1000))
    await model.answer_all()
    with pytest.raises(SiltstoneError, match="cannot embed t0"):
        await task
    assert len(model.calls) <= UNDER_WAY + 1


async def test_texts_that_kill_the_process_fail_their_caller_alone(lanes: Lanes, model: Model) -> None:
    """Those who were in the same call, or in the other one under way, are asked for again, one after the other."""
    model.deadly.add("t200")
    first = await asked(lanes, said(2 * SLICE))
    tasks = [await asked(lanes, texts) for texts in (["t100"], ["t200"], ["t300"])]
    await model.answer_all()
    good, bad, other = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(bad, SiltstoneError)
    assert f"died {MOST_DEATHS} times in a row" in str(bad)
    assert isinstance(good, np.ndarray)
    assert isinstance(other, np.ndarray)
    assert (numbers(good), numbers(other)) == ([100], [300])
    assert numbers(await first) == list(range(2 * SLICE))
    assert sum("t200" in call for call in model.calls) == MOST_DEATHS


async def test_a_process_that_was_killed_from_outside_loses_nothing(lanes: Lanes, model: Model) -> None:
    model.deadly.add("t3")
    task = await asked(lanes, said(100))
    model.waiting.pop(0).set()
    await settled()
    model.deadly.clear()
    await model.answer_all()
    assert numbers(await task) == list(range(100))


async def test_after_a_failure_there_is_one_call_at_a_time(lanes: Lanes, model: Model) -> None:
    """Until it is clear who was at fault, a death can be nobody else's."""
    model.refused.add("t200")
    first = await asked(lanes, said(SLICE))
    others = await asked(lanes, said(SLICE - 1, 500))
    bad = await asked(lanes, ["t200"])
    good = await asked(lanes, ["t300"])
    await model.answer()
    await model.answer()
    assert len(model.waiting) == 1
    await model.answer()
    assert len(model.waiting) <= 1
    await model.answer_all()
    with pytest.raises(SiltstoneError):
        await bad
    assert numbers(await good) == [300]
    await asyncio.gather(first, others)


async def test_no_call_is_larger_than_the_settings_batch(model: Model) -> None:
    lanes = Lanes(model, 3)
    task = await asked(lanes, said(10))
    await model.answer_all()
    assert numbers(await task) == list(range(10))
    assert max(map(len, model.calls)) == 3


async def test_what_waits_at_the_end_is_cancelled(lanes: Lanes, model: Model) -> None:
    task = await asked(lanes, said(100))
    for call in list(lanes._calls):
        call.cancel()
    await lanes.close()
    with pytest.raises(asyncio.CancelledError):
        await task
