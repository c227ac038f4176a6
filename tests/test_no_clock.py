"""No test asserts how long something took, and none sleeps for long: a busy machine would make it fail, or be slow.

Counts of calls, bytes, requests, steps and SQL statements say the same of work, and no load changes them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parent

#: Calls whose value is a time of a clock, by their last name; `time` is also the clock of an event loop.
CLOCKS: Final = frozenset(
    {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time", "process_time_ns"}
    | {"thread_time", "thread_time_ns", "time", "time_ns", "elapsed", "total_seconds"}
)
#: Attributes and keys by which others tell how long something took.
TOLD: Final = frozenset({"elapsed", "seconds_taken", "seconds"})
#: Sleeps up to this are pauses between two looks.
LONGEST_SLEEP: Final = 0.5

DEADLINE: Final = "the deadline of a wait for a condition: it is met early, and only a fault meets it late"
#: Functions that may, each with its reason.
MAY_ASSERT: Final = {
    "crash/lives.py:stop": DEADLINE,
    "fuzz/trials.py:attempt": "seconds of a processor, a hundred times what an input takes: the worker stands still",
    "fuzz/test_requests.py:test_every_request_is_answered_in_bounded_work": (
        "seconds of a processor, a hundred times what a request takes: the loop stands still"
    ),
    "streams/access/test_oidc.py:test_clocks_may_differ_by_the_leeway_and_no_more": "the times are in a token",
    "streams/models/embedding/test_service.py:test_the_pause_that_a_service_asks_for_is_kept": "no load shortens it",
    "support/waiting.py:_wait": DEADLINE,
    "worker/test_sustained.py:test_a_record_is_as_old_as_its_schedule_says_however_late_the_broker_takes_it": (
        "a timestamp is not before the begin: no load makes it so"
    ),
}
FAULT: Final = "how long a fault lasts: what is asserted holds for any length"
PLAYS: Final = "the slow party itself: it is cancelled, killed or let go before"
MAY_SLEEP: Final = {
    "crash/test_kills.py:killed_at_any_instant": "a kill at any instant, chosen by a seed",
    "crash/test_rebalance.py:kill_and_join": "a kill at any instant, chosen by a seed",
    "crash/test_surroundings.py:test_a_broker_that_hangs_for_longer_than_a_session": "longer than the session",
    "crash/test_surroundings.py:test_a_shard_that_somebody_holds_for_a_while": FAULT,
    "crash/test_own_writes.py:move_them": "longer than the session",
    "crash/test_workers.py:test_a_paused_worker_writes_nothing_over_the_next_owners_rows": "longer than the session",
    "kafka/test_lives.py:a_broker_is_killed": FAULT,
    "kafka/test_lives.py:a_broker_is_paused": FAULT,
    "kafka/test_lives.py:the_controller_is_killed": FAULT,
    "kafka/test_lives.py:all_brokers_are_killed": FAULT,
    "kafka/test_lives.py:two_brokers_are_away": FAULT,
    "kafka/test_lives.py:the_worker_is_paused": FAULT,
    "kafka/test_lives.py:brokers_fall_silent_in_turn": FAULT,
    "streams/doors/http/test_slow_requests.py:think": "the answer takes longer than a head may",
    "streams/doors/http/test_slow_requests.py:drip": "a part of `SHORT`: byte by byte",
    "streams/runtime/test_called_process.py:_told": PLAYS,
    "streams/kafka/patches/test_closing.py:test_one_that_waits_to_fetch_again_after_an_error": PLAYS,
    "streams/models/embedding/test_process.py:_hang": PLAYS,
    "streams/kafka/faust/test_recovery.py:late": "a slow seek: a fetch that was begun before ends meanwhile",
    "support/object_store.py:_pass": PLAYS,
    "support/openai_server.py:_answer_one": PLAYS,
    "support/openai_server.py:_write": "between two bytes of an answer without an end",
    "support/waiting.py:_wait": "between two looks, as its callers say: 20 ms where they say nothing",
    "support/workers.py:surely_asked": "between two questions: 20 ms",
    "support/untouched.py:ended": "between two looks: 50 ms at most",
    "worker/test_sustained.py:send_batch": "a tenth of a second at most, given by its test",
}


def clock_asserts(source: str) -> Iterator[tuple[int, str]]:
    """Line and function of each assert, and of each condition for a failure, with a time of a clock in it."""
    for name, body in _functions(ast.parse(source)):
        told = _told_by_clocks(body)
        for node in _own(body):
            if isinstance(node, ast.Assert) or (isinstance(node, ast.If | ast.While) and any(map(_fails, node.body))):
                conditions = [node.test]
            else:
                continue
            if any(_is_of_a_clock(part, told) for condition in conditions for part in ast.walk(condition)):
                yield node.lineno, name


def long_sleeps(source: str) -> Iterator[tuple[int, str]]:
    """Line and function of each sleep that is longer, or of a length that is not written there."""
    for name, body in _functions(ast.parse(source)):
        for node in _own(body):
            if isinstance(node, ast.Call) and _last(node.func) == "sleep" and _longest(node.args[0]) > LONGEST_SLEEP:
                yield node.lineno, name


def _functions(tree: ast.Module) -> Iterator[tuple[str, list[ast.stmt]]]:
    yield "", [one for one in tree.body if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.body


def _own(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of a function, without those of the functions in it."""
    waiting: list[ast.AST] = [*body]
    while waiting:
        node = waiting.pop(0)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
            waiting += ast.iter_child_nodes(node)


def _last(called: ast.AST) -> str:
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def _told_by_clocks(body: list[ast.stmt]) -> frozenset[str]:
    """Names whose value is of a clock, also by way of other names, of lists, and of the functions within."""
    told: frozenset[str] = frozenset()
    while True:
        more = set(told)
        for node in (part for statement in body for part in ast.walk(statement)):
            targets: list[ast.expr] = []
            value: ast.expr | None = None
            if isinstance(node, ast.Assign):
                targets, value = node.targets, node.value
            elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
                targets, value = [node.target], node.value
            elif isinstance(node, ast.For | ast.AsyncFor):
                targets, value = [node.target], node.iter
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
                targets, value = [node.func.value], next(iter(node.args), None)
            if value is not None and any(_is_of_a_clock(part, told) for part in ast.walk(value)):
                more |= {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
        if more == told:
            return told
        told = frozenset(more)


def _is_of_a_clock(node: ast.AST, told: frozenset[str]) -> bool:
    match node:
        case ast.Name(id=name):
            return name in told
        case ast.Call(func=ast.Attribute(attr=name), args=[]) | ast.Call(func=ast.Name(id=name), args=[]):
            return name in CLOCKS
        case ast.Call(func=ast.Attribute(attr="pop"), args=[ast.Constant(value=str(key)), *_]):
            return key in TOLD
        case ast.Subscript(slice=ast.Constant(value=str(key))):
            return key in TOLD
        case ast.Attribute(attr=name):
            return name == "elapsed"
    return False


def _fails(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=called)):
            return _last(called) == "fail"
        case ast.Raise(exc=ast.Call(func=called) | (ast.Name() as called)):
            return _last(called) == "AssertionError"
    return False


def _longest(length: ast.expr) -> float:
    """What is written of it; a name and a call say nothing, and count as long, unless the call is of two numbers."""
    match length:
        case ast.Constant(value=int() | float() as seconds):
            return seconds
        case ast.Call(func=ast.Attribute(attr="uniform"), args=[_, upper]):
            return _longest(upper)
        case ast.Call(func=ast.Attribute(attr="choice"), args=[ast.List(elts=several) | ast.Tuple(elts=several)]):
            return max(map(_longest, several))
    return float("inf")


Look = Callable[[str], Iterator[tuple[int, str]]]


def found(look: Look) -> dict[str, list[int]]:
    """By file and function, the lines."""
    places: dict[str, list[int]] = {}
    for path in sorted(TESTS.rglob("*.py")):
        for line, name in look(path.read_text(encoding="utf-8")):
            places.setdefault(f"{path.relative_to(TESTS)}:{name}", []).append(line)
    return places


@pytest.mark.parametrize(("look", "may"), [(clock_asserts, MAY_ASSERT), (long_sleeps, MAY_SLEEP)])
def test_no_test_asserts_a_time_or_sleeps_for_long(look: Look, may: dict[str, str]) -> None:
    places = found(look)
    shown = [
        f"tests/{place.partition(':')[0]}:{line}" for place in places if place not in may for line in places[place]
    ]
    assert shown == []
    assert [place for place in may if place not in places] == [], "they are not there any more"


@pytest.mark.parametrize(
    "planted",
    [
        "began = time.monotonic()\nwork()\nassert time.monotonic() - began < 1",
        "began = perf_counter()\nwork()\ntook = perf_counter() - began\nassert took < 1",
        "began = loop.time()\nended: float = loop.time()\nassert (ended - began) < 1",
        "assert asyncio.get_running_loop().time() < limit",
        "times = []\ntimes.append(time.process_time())\nassert max(times) < 1",
        "times = []\ndef note():\n    times.append(time.time())\nassert times[1] - times[0] < 1",
        "began = time.monotonic_ns()\nif time.monotonic_ns() > began + 1:\n    pytest.fail('late')",
        "began = time.monotonic()\nif began > 1:\n    raise AssertionError",
        "assert answer.elapsed < limit",
        "assert answer.elapsed.total_seconds() < 1",
        "assert told['seconds'] < 60",
        "assert told.pop('seconds') < 60",
        "if (now := time.time()):\n    assert now < 1",
    ],
)
@pytest.mark.parametrize("define", ["def test_it():", "async def test_it():", "class Test:\n  def test_it(self):"])
def test_a_planted_assert_on_a_time_is_found(planted: str, define: str) -> None:
    lines = "\n".join(f"    {line}" for line in planted.splitlines())
    assert [name for _, name in clock_asserts(f"import time\n{define}\n{lines}\n")] == ["test_it"]


@pytest.mark.parametrize(
    "said", ["assert work() == 3", "now = time.time()\nsend(now)\nassert sent == 1", "time.time()"]
)
def test_a_time_that_is_not_asserted_is_no_matter(said: str) -> None:
    assert list(clock_asserts(said)) == []


@pytest.mark.parametrize(
    ("sleep", "long"),
    [
        ("time.sleep(0.6)", True),
        ("await asyncio.sleep(3)", True),
        ("sleep(chance.uniform(0, 4))", True),
        ("sleep(seconds)", True),
        ("time.sleep(0.5)", False),
        ("await asyncio.sleep(0)", False),
        ("sleep(chance.uniform(0, 0.4))", False),
        ("sleep(chance.choice([0, 0.01]))", False),
    ],
)
def test_a_planted_sleep_is_found_where_it_is_long_or_its_length_is_unknown(sleep: str, long: bool) -> None:
    assert [name for _, name in long_sleeps(f"async def test_it():\n    {sleep}\n")] == ["test_it"] * long
