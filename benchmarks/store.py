"""Writes, searches and the lifecycle of one shard, beside ChromaDB and LanceDB.

    pip install -e .[bench]
    python benchmarks/store.py [--sizes 10000,100000,1000000] [--peer-seconds 180] [--json]

Each contender runs in a process of its own, one after the other, and is given the same memories (seeded random
unit vectors of 384 numbers) in the same batches, each batch in the form in which it likes it best: the clock
runs while it writes, not while its input is made. At each size it answers the same questions: the ten nearest
memories of one user, with their texts. Users are asked one after the other, and then again: the first question
finds nothing of the user in Siltstone's memory, the later ones do. Ratios of searches take the later ones, and
`search_first_…` the first.

What is not the same: Siltstone applies events, so a batch that comes twice changes nothing, near-copies are looked
for and a commit is synced to disk. The peers' plain `add` promises neither; `write_once_…` is what they do to keep
an id from coming twice (ChromaDB's `upsert`, LanceDB's `merge_insert`), written to a second, empty table.
LanceDB gets an index on the user and `optimize()` before it is asked, not counted. A peer that has written for
`--peer-seconds` stops there, and its searches are measured at the size that it reached.

BLAS and OpenMP have one thread everywhere. The peers' own threads are not limited; Siltstone has none.
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split

import importlib
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import click
import numpy as np
import orjson
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from schemas.events import Parts, Promotion, event_id
from schemas.messages import memory_id
from schemas.settings import LifecycleSettings, LongTermSettings
from tables.shard import Shard
from tables.vectors import Vectors

Figures = dict[str, float | int | None]
Told = dict[str, Any]

THIS_FILE: Final = str(Path(__file__).resolve())
SINGLE_THREADED: Final = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

SEED: Final = 20_250_301
DIMENSION: Final = 384
BATCH: Final = 1_000
MEMORIES_A_USER: Final = 200
USERS_AT_A_TIME: Final = 50
"""They talk in turns, so that a batch holds twenty memories of each."""

ONCE_LIMIT: Final = 10_000
"""Memories written by what keeps ids apart."""

TOP: Final = 10
USERS_ASKED: Final = 100
QUESTIONS_AGAIN: Final = 3
RECOMPUTES: Final = 5

DAY_MS: Final = 86_400_000
FIRST_AT: Final = 1_740_787_200_000
DAYS: Final = 60
"""Over which the memories were last accessed."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive memories: their numbers, users and vectors, float32[n, d]."""

    numbers: range
    users: list[str]
    texts: list[str]
    vectors: Vectors


def batch_of(numbers: range) -> Batch:
    chance = np.random.default_rng([SEED, numbers.start])
    return Batch(
        numbers,
        [user_of(number) for number in numbers],
        [f"User: I said thing number {number} about the weather\nAssistant: noted" for number in numbers],
        _unit(chance.standard_normal((len(numbers), DIMENSION), np.float32)),
    )


def user_of(number: int) -> str:
    block = number // (MEMORIES_A_USER * USERS_AT_A_TIME)
    return f"user-{block * USERS_AT_A_TIME + number % USERS_AT_A_TIME}"


def questions(size: int) -> list[tuple[str, Vectors]]:
    """User and vector: users from everywhere, each once."""
    chance = np.random.default_rng(SEED)
    users = sorted({user_of(number) for number in range(0, size, max(1, size // 20_000))})
    asked = chance.choice(users, min(USERS_ASKED, len(users)), replace=False)
    vectors = _unit(chance.standard_normal((len(asked), DIMENSION), np.float32))
    return list(zip(asked.tolist(), vectors, strict=True))


def _unit(vectors: Vectors) -> Vectors:
    unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


class Store(Protocol):
    """One way to keep memories. `prepared` is not counted as writing."""

    def prepared(self, batch: Batch) -> Any: ...

    def write(self, prepared: Any) -> None: ...

    def settle(self) -> None:
        """What its documentation advises between writing and asking."""

    def search(self, user: str, vector: Vectors) -> list[tuple[str, str]]:
        """(number, text) of the nearest, best first."""


class Siltstone:
    """The shard, without the stream in front of it: events that are parsed, vectors that are there."""

    def __init__(self, folder: Path) -> None:
        self.shard = Shard(0, folder / "0", "random", DIMENSION, LongTermSettings(), LifecycleSettings())

    def prepared(self, batch: Batch) -> tuple[list[Promotion], dict[uuid.UUID, Vectors]]:
        events = [_promotion(*each) for each in zip(batch.numbers, batch.users, batch.texts, strict=True)]
        return events, {event.event_id: vector for event, vector in zip(events, batch.vectors, strict=True)}

    def write(self, prepared: tuple[list[Promotion], dict[uuid.UUID, Vectors]]) -> None:
        self.shard.apply(*prepared, FIRST_AT)

    def settle(self) -> None:
        pass

    def search(self, user: str, vector: Vectors) -> list[tuple[str, str]]:
        memories = self.shard.memories_of(user)
        best = np.argsort(-self.shard.similarities(user, vector, memories), kind="stable")[:TOP]
        return [(memories[row].message_ids[0], memories[row].text) for row in best]

    def recompute(self) -> Told:
        """Milliseconds of a recompute a minute after the last one, and of a scan of all that decides its outcome."""
        lifecycle, now = LifecycleSettings(), FIRST_AT + DAYS * DAY_MS
        first, _ = _timed(self.shard.recompute, now, lifecycle)
        ((changed,),) = self.shard._catalog._db.execute("SELECT count(*) FROM transitions").fetchall()
        took, scans = [], []
        for minute in range(1, RECOMPUTES + 1):
            at = now + minute * 60_000
            took.append(_timed(self.shard.recompute, at, lifecycle)[0])
            scans.append(_timed(self._scan)[0])
        return {
            "recompute_ms": round(float(np.median(took)) * 1e3, 1),
            "recompute_first_ms": round(first * 1e3, 1),
            "scan_ms": round(float(np.median(scans)) * 1e3, 1),
            "changed_at_first": changed,
        }

    def _scan(self) -> None:
        self.shard._catalog._db.execute(
            "SELECT max(seq), max(id), max(strlen(user_id)), max(strlen(state)), max(importance), "
            "bool_or(pinned), max(last_accessed) FROM memories"
        ).fetchall()


def _promotion(number: int, user: str, text: str) -> Promotion:
    identity, at = memory_id(user, "s", (str(number),)), FIRST_AT + number * 7_919_000 % (DAYS * DAY_MS)
    return Promotion(
        event_id=event_id("promotion", identity),
        user_id=user,
        timestamp=at,
        memory_id=identity,
        session_id="s",
        text=text,
        message_ids=[str(number)],
        importance=70 + number % 31,
        started_at=at,
        parts=Parts(reason="all", total=800),
    )


class Chroma:
    """ChromaDB as its documentation shows it: a persistent client, a collection of cosine distances."""

    def __init__(self, folder: Path, once: bool = False) -> None:
        chromadb: Any = importlib.import_module("chromadb")
        client = chromadb.PersistentClient(str(folder), chromadb.Settings(anonymized_telemetry=False))
        self._memories = client.create_collection(
            "memories", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )
        self._add = self._memories.upsert if once else self._memories.add

    def prepared(self, batch: Batch) -> dict[str, Any]:
        return {
            "ids": [str(number) for number in batch.numbers],
            "embeddings": batch.vectors,
            "documents": batch.texts,
            "metadatas": [{"user_id": user} for user in batch.users],
        }

    def write(self, prepared: dict[str, Any]) -> None:
        self._add(**prepared)

    def settle(self) -> None:
        pass

    def search(self, user: str, vector: Vectors) -> list[tuple[str, str]]:
        found = self._memories.query(query_embeddings=vector[None], n_results=TOP, where={"user_id": user})
        return list(zip(found["ids"][0], found["documents"][0], strict=True))


class Lance:
    """LanceDB as its documentation shows it: Arrow tables in, a filter before the search out."""

    def __init__(self, folder: Path, once: bool = False) -> None:
        lancedb: Any = importlib.import_module("lancedb")
        schema = self.prepared(batch_of(range(1))).schema
        self._memories = lancedb.connect(str(folder)).create_table("memories", schema=schema)
        self._once, self._indexed = once, False

    def prepared(self, batch: Batch) -> Any:
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(batch.vectors.ravel()), DIMENSION)
        ids = [str(number) for number in batch.numbers]
        return pa.table({"id": ids, "user_id": batch.users, "text": batch.texts, "vector": vectors})

    def write(self, prepared: Any) -> None:
        if self._once:
            self._memories.merge_insert("id").when_not_matched_insert_all().execute(prepared)
        else:
            self._memories.add(prepared)

    def settle(self) -> None:
        if not self._indexed:
            self._memories.create_scalar_index("user_id")
            self._indexed = True
        self._memories.optimize()

    def search(self, user: str, vector: Vectors) -> list[tuple[str, str]]:
        asked = self._memories.search(vector).distance_type("cosine").where(f"user_id = '{user}'", prefilter=True)
        found = asked.select(["id", "text", "_distance"]).limit(TOP).to_arrow()
        return list(zip(found["id"].to_pylist(), found["text"].to_pylist(), strict=True))


@dataclass(frozen=True, slots=True)
class Contender:
    """A store, and the same one with what keeps an id from coming twice where that is another call."""

    name: str
    title: str
    open: Callable[[Path], Store]
    open_once: Callable[[Path], Store] | None = None


CONTENDERS: Final = (
    Contender("siltstone", "Siltstone", Siltstone),
    Contender("chromadb", "ChromaDB", Chroma, lambda folder: Chroma(folder, once=True)),
    Contender("lancedb", "LanceDB", Lance, lambda folder: Lance(folder, once=True)),
)
PEERS: Final = tuple(contender.name for contender in CONTENDERS[1:])


@dataclass(slots=True)
class Run:
    """One contender's work in its process."""

    store: Store
    limit_seconds: float
    seconds: float = 0.0
    size: int = 0
    told: list[Told] = field(default_factory=list)

    def fill(self, size: int) -> bool:
        """Write up to a size; False where the time ended before."""
        for numbers in _batches(self.size, size):
            if self.seconds > self.limit_seconds:
                return False
            prepared = self.store.prepared(batch_of(numbers))
            self.seconds += _timed(self.store.write, prepared)[0]
            self.size = numbers.stop
        return True

    def measure(self, sizes: Sequence[int]) -> None:
        for size in sizes:
            in_time = self.fill(size)
            self.store.settle()
            told: Told = {"size": self.size, "write_per_s": round(self.size / self.seconds)}
            told |= searches(self.store, self.size)
            self.told.append(told)
            click.echo({key: value for key, value in told.items() if key != "found"}, err=True)
            if not in_time:
                return


def searches(store: Store, size: int) -> Told:
    """Milliseconds of the first question to each user and of later ones; the numbers that were found."""
    asked = questions(size)
    first, again, found = [], [], []
    for user, vector in asked:
        seconds, hits = _timed(store.search, user, vector)
        first.append(seconds * 1e3)
        found.append([number for number, _ in hits])
    for _ in range(QUESTIONS_AGAIN):
        for user, vector in asked:
            again.append(_timed(store.search, user, vector)[0] * 1e3)
    told: Told = {"found": found}
    for name, taken in (("search_first", first), ("search", again)):
        p50, p99 = np.percentile(taken, [50, 99])
        told |= {f"{name}_p50_ms": round(float(p50), 3), f"{name}_p99_ms": round(float(p99), 3)}
    return told


def _batches(start: int, stop: int) -> Iterator[range]:
    for first in range(start, stop, BATCH):
        yield range(first, min(first + BATCH, stop))


def _timed(work: Callable[..., Any], *given: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work(*given)
    return time.perf_counter() - start, result


def measure(contender: Contender, sizes: Sequence[int], peer_seconds: float) -> Told:
    """Run a contender in a process and a folder of its own; what it told."""
    with tempfile.TemporaryDirectory() as folder:
        limit = peer_seconds if contender.name in PEERS else float("inf")
        done = subprocess.run(
            [sys.executable, "-W", "ignore", THIS_FILE, "contend", contender.name, str(limit), *map(str, sizes)],
            check=False,
            stdout=subprocess.PIPE,
            cwd=folder,
            env=os.environ | SINGLE_THREADED,
        )
    if done.returncode:
        raise click.ClickException(f"{contender.title} ended with exit code {done.returncode}")
    told: Told = orjson.loads(done.stdout.splitlines()[-1])
    return told


def measure_all(sizes: Sequence[int], peer_seconds: float, say: Callable[[str], None]) -> dict[str, Told]:
    told = {}
    for contender in CONTENDERS:
        say(f"{contender.title} …")
        told[contender.name] = measure(contender, sizes, peer_seconds)
    return told


def figures_of(told: dict[str, Told]) -> Figures:
    """Ratios at the largest size that a peer reached in full for writes; of its last searches for searches."""
    ours = told["siltstone"]
    figures: Figures = {}
    for name, one in told.items():
        for at in one["sizes"]:
            prefix = f"{name}_{at['size']}_"
            figures |= {prefix + key: value for key, value in at.items() if key not in ("size", "found")}
        if one.get("once_per_s"):
            figures[f"{name}_write_once_per_s"] = one["once_per_s"]
    at_size = {at["size"]: at for at in ours["sizes"]}
    largest = ours["sizes"][-1]
    for peer in PEERS:
        reached = told[peer]["sizes"]
        last = reached[-1]
        both = next((at for at in reversed(reached) if at["size"] in at_size), None)
        if both is not None:
            mine = at_size[both["size"]]
            figures[f"write_ratio_{peer}"] = round(mine["write_per_s"] / both["write_per_s"], 2)
            figures[f"write_ratio_{peer}_size"] = both["size"]
            figures[f"same_hits_{peer}"] = _same(mine["found"], both["found"])
        once = min(ours["sizes"], key=lambda at: abs(at["size"] - ONCE_LIMIT))
        figures[f"write_once_ratio_{peer}"] = round(once["write_per_s"] / told[peer]["once_per_s"], 2)
        for name in ("search", "search_first"):
            ratio = last[f"{name}_p50_ms"] / largest[f"{name}_p50_ms"]
            figures[f"{name}_ratio_{peer}"] = round(ratio, 2)
        figures[f"search_ratio_{peer}_size"] = last["size"]
    figures |= {key: ours[key] for key in ("recompute_ms", "recompute_first_ms", "scan_ms", "changed_at_first")}
    figures["recompute_ratio_scan"] = round(ours["recompute_ms"] / ours["scan_ms"], 2)
    figures["size"] = largest["size"]
    return figures


def _same(mine: list[list[str]], theirs: list[list[str]]) -> float:
    """The share of hits that both found."""
    both = sum(len(set(a) & set(b)) for a, b in zip(mine, theirs, strict=True))
    return round(both / sum(map(len, mine)), 4)


def table(told: dict[str, Told], figures: Figures) -> Table:
    """One row a contender and size."""
    shown = Table(
        *("", "memories", "memories/s", "written once/s", "search p50 ms", "p99 ms", "first p50 ms", "p99 ms"),
        title=f"One shard: {DIMENSION} numbers a vector, batches of {BATCH:,}, {MEMORIES_A_USER} memories a user",
        caption=f"Recompute of {figures['size']:,} memories: {figures['recompute_ms']} ms (the first one "
        f"{figures['recompute_first_ms']}), a scan {figures['scan_ms']} ms: {figures['recompute_ratio_scan']} ×",
    )
    for contender in CONTENDERS:
        one = told[contender.name]
        for place, at in enumerate(one["sizes"]):
            shown.add_row(
                "" if place else contender.title,
                f"{at['size']:,}",
                f"{at['write_per_s']:,}",
                "" if place or not one.get("once_per_s") else f"{one['once_per_s']:,}",
                *(f"{at[f'{name}_{q}_ms']:.2f}" for name in ("search", "search_first") for q in ("p50", "p99")),
            )
    return shown


def _sizes(context: click.Context, parameter: click.Parameter, value: str) -> list[int]:
    try:
        sizes = sorted({int(part) for part in value.split(",")})
    except ValueError:
        raise click.BadParameter("whole numbers with commas between them") from None
    if sizes[0] < MEMORIES_A_USER:
        raise click.BadParameter(f"a size is at least {MEMORIES_A_USER}")
    return sizes


@click.group(invoke_without_command=True)
@click.option("--sizes", default="10000,100000,1000000", show_default=True, callback=_sizes)
@click.option("--peer-seconds", default=180.0, show_default=True, help="A peer writes no longer than that.")
@click.option("--json", "as_json", is_flag=True, help="End with one line holding a JSON object.")
@click.pass_context
def main(context: click.Context, sizes: list[int], peer_seconds: float, as_json: bool) -> None:
    """Measure writes, searches and the lifecycle beside ChromaDB and LanceDB."""
    if context.invoked_subcommand:
        return
    told = measure_all(sizes, peer_seconds, Console(stderr=True).print)
    figures = figures_of(told)
    Console().print(table(told, figures))
    if as_json:
        click.echo(orjson.dumps(figures))


@main.command(hidden=True)
@click.argument("name")
@click.argument("limit", type=float)
@click.argument("sizes", type=int, nargs=-1, required=True)
def contend(name: str, limit: float, sizes: tuple[int, ...]) -> None:
    """Be one contender."""
    contender = next(contender for contender in CONTENDERS if contender.name == name)
    told: Told = {}
    if contender.open_once is not None:
        once = Run(contender.open_once(Path("once")), limit)
        once.fill(min(ONCE_LIMIT, sizes[-1]))
        told["once_per_s"] = round(once.size / once.seconds)
    store = contender.open(Path("plain"))
    run = Run(store, limit)
    run.measure(sizes)
    told["sizes"] = run.told
    if isinstance(store, Siltstone):
        told |= store.recompute()
    click.echo(orjson.dumps(told))
    sys.stdout.flush()
    os._exit(0)  # the folder is thrown away: nobody needs the index of a million saved


if __name__ == "__main__":
    main()
