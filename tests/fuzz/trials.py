"""Logs as inputs of a fuzzer: a record a line, and before it the letter of its topic."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import orjson

from schemas.events import Promotion, Remember
from tables.memories.batch import Batch
from tests.crash.chatter import Said
from tests.fuzz.mutations import hostile, mutated
from tests.fuzz.records import valid
from tests.fuzz.way import DECODERS, Way, readable

LETTERS = {topic[:1].encode(): topic for topic in DECODERS}
#: Inputs that one shard and its windows take. Opening them again takes as long as a dozen inputs.
INPUTS_OF_A_WAY = 50
INPUTS_OF_A_DAY = 10
#: Of a processor: an input of 200 KB takes a fraction of one.
SECONDS = 120.0
SEEDS = 40


class Trials:
    """Has inputs taken all the way. What one leaves behind the next ones find: a failure may need its forerunners."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "way"
        self._way: Way | None = None
        self._taken = 0

    def attempt(self, data: bytes) -> None:
        """Raises what would stop a worker, or an `AssertionError` where it would stand still."""
        start = time.process_time()
        self._attempt(data)
        assert time.process_time() - start < SECONDS  # libFuzzer's own alarm may ring when it has ended

    def _attempt(self, data: bytes) -> None:
        records = [said for line in data.split(b"\n") if (said := _record(line)) is not None]
        if not records:
            return
        if self._way is None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._way = Way(self._folder).__enter__()
        self._way.take(records)
        self._taken += 1
        if self._taken % INPUTS_OF_A_DAY == 0:
            self._way.age()
        if self._taken % INPUTS_OF_A_WAY == 0:
            self._way.assert_all_accounted_for()
            self._way.__exit__()
            self._way = None


def _record(line: bytes) -> Said | None:
    topic = LETTERS.get(line[:1])
    return None if topic is None else readable(topic, line[1:])


def changed(data: bytes, size: int, chance: random.Random, plainly: Callable[[bytes, int], bytes]) -> bytes:
    """Another log of at most `size` bytes: as the fuzzer knows to change bytes, or as we know to change records."""
    if chance.random() < 0.2:
        return plainly(data, size)
    lines = data.split(b"\n")
    for _ in range(chance.choice((1, 2, 4, 8, 16))):
        _change(lines, chance)
    return b"\n".join(lines)[:size]


def _change(lines: list[bytes], chance: random.Random) -> None:
    place, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.choice(("mutate",) * 5 + ("valid", "hostile", "remove", "repeat", "swap")):
        case "mutate":
            lines[place] = _changed(lines[place], chance)
        case "valid":
            lines.insert(place, _line(*_valid(chance)))
        case "hostile":
            said = hostile(chance)
            lines.insert(place, _line(said.topic, said.value))
        case "remove" if len(lines) > 1:
            del lines[place]
        case "repeat":
            lines.append(lines[place])
        case _:
            lines[place], lines[other] = lines[other], lines[place]


def seeds(folder: Path) -> None:
    """Logs to begin with, of records as they should be."""
    folder.mkdir()
    for seed in range(SEEDS):
        chance = random.Random(seed)
        lines = [_line(*_valid(chance)) for _ in range(chance.randrange(2, 20))]
        (folder / f"{seed}").write_bytes(b"\n".join(lines))


def _valid(chance: random.Random) -> tuple[str, bytes]:
    topic, fields = valid(chance)
    return topic, orjson.dumps(fields)


def _line(topic: str, value: bytes) -> bytes:
    return topic[:1].encode() + value


def _changed(line: bytes, chance: random.Random) -> bytes:
    try:
        fields = orjson.loads(line[1:])
        return line[:1] + mutated(chance, fields) if isinstance(fields, dict) and fields else line
    except (orjson.JSONDecodeError, RecursionError):  # orjson reads what is nested deeper than Python can go
        return line


def break_something() -> None:
    """From now on, a memory with a field that nobody knows is more than a shard can bear."""
    keep = Batch._keep

    def kept(self: Batch, event: Promotion | Remember) -> None:
        assert (event.metadata or {}).keys() <= {"tags", "transitions", "mood", "emotion"}
        keep(self, event)

    Batch._keep = kept  # type: ignore[method-assign]
