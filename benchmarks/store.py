"""Writes, searches and the lifecycle of one shard, compared with ChromaDB and LanceDB.

    pip install -e .[bench]
    python benchmarks/store.py [--memories 1000000] [--users 5000] [--peer-seconds 180] [--json]

Each contender runs in its own process, one after the other, and gets the same memories (seeded random unit vectors of
384 numbers) in the same batches, each batch in the form that suits it best: only writing is timed, not the making of
its input. Users are interleaved as in months of chat: a thousand talk at a time, five memories each, and return
later. In a batch, two memories in a hundred were written before (the log was read again), and two repeat what their
user said before (near-copies).

Siltstone applies events: a repeated batch changes nothing, near-copies are looked for, a commit is synced to disk. So
the peers use the call that writes an id only once (ChromaDB's `upsert`, LanceDB's `merge_insert`); `write_ratio_…` is
at the size that the peer reached within `--peer-seconds`. `append_ratio_…` is for their plain `add`, which promises
nothing, into a second, empty table; `write_small_ratio_…` is for batches of 64, as a worker that is not busy writes
them.

At each size they answer the same questions: the ten nearest memories of one user, with their texts, for each user in
turn, and then again. Siltstone searches by vectors alone, as the peers do (`search_ratio_…`), and by vectors and
words, as it answers its users (`hybrid_ratio_…`), each for other users. `first_search_ratio_…` is for the first such
question of a user, when nothing of the user is in memory. Before the questions, and not counted, LanceDB gets an
index on the user and `optimize()`, and Siltstone does a worker's work between batches: it fills in the terms and
bodies of new memories (`filled_per_s`).

At the end, the cosines of a user's memories are computed with FAISS's segments and by plain products over the
catalog's file of vectors, side by side (`faiss_…`, `products_…`).

BLAS and OpenMP have one thread everywhere. The peers' own threads are not limited; Siltstone has none. Its garbage
collector has the thresholds that a worker sets at its start: with Python's defaults it takes a fifth of a batch.
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split

import asyncio
import gc
import importlib
import os
import resource
import subprocess
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

import click
import numpy as np
import orjson
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from schemas.events import Parts, Promotion
from schemas.ids import event_id, memory_id
from schemas.memories import State
from schemas.settings import EmbeddingSettings, LifecycleSettings, LongTermSettings
from schemas.topics import Topics
from streams.doors.cli.process import COLLECT_AFTER
from streams.kafka.commit.outbox import Outbox
from streams.kafka.event_log import EventLog
from streams.models.embedding.embedding import Embedding, Model, Side
from streams.recall.query import Query
from streams.recall.search import Recall
from streams.recall.windows import SaidLately
from streams.runtime.clock import EventClock
from streams.shards.models import Models
from streams.shards.owned import OwnedShards
from streams.telemetry.metrics import Metrics
from tables.memories.shard import Shard
from tables.vectors.index import Seqs, Vectors, cell_of, cells_of
from tables.vectors.vector_file import HEAD_BYTES, path_of
from tables.windows.short_term import ShortTermStore

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.products import ProductIndex

P = ParamSpec("P")
T = TypeVar("T")

Figures = dict[str, float | int | None]
Told = dict[str, Any]

THIS_FILE: Final = str(Path(__file__).resolve())
SINGLE_THREADED: Final = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

SEED: Final = 20_250_301
DIMENSION: Final = 384
BATCH: Final = 1_000
SMALL_BATCH: Final = 64
SMALL_BATCHES: Final = 30
SMALL_FROM: Final = 1 << 40
"""The first number of the memories in small batches, above all others."""

MEMORIES_A_USER: Final = 200
TALKING: Final = 1_000
"""Users who talk at the same time."""

A_SESSION: Final = 5
"""Memories of one session, interleaved with those of others."""

AGAIN: Final = 50
"""One memory in this many was written before, and one repeats what its user said the turn before."""

APPENDED: Final = 10_000
"""Memories written by the peers' plain append."""

WORDS: Final = 20_000
WORDS_A_TEXT: Final = 24

TOP: Final = 10
USERS_ASKED: Final = 100
"""Users who are searched for by vectors alone; as many others are searched for by words as well."""

QUESTIONS_AGAIN: Final = 3
RECOMPUTES: Final = 5
AT_A_TIME: Final = 1_000
"""Memories whose search rows are filled at a time."""

DAY_MS: Final = 86_400_000
FIRST_AT: Final = 1_740_787_200_000
DAYS: Final = 60
"""The days over which the last accesses are spread."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Memories, most of them consecutive: their numbers, users and vectors, float32[n, d]."""

    numbers: list[int]
    users: list[str]
    texts: list[str]
    vectors: Vectors


def batch_of(numbers: range, users: int) -> Batch:
    """The memories of these numbers, except that every `AGAIN`th is one of an earlier batch."""
    back = TALKING * A_SESSION
    chosen = [n - back if n % AGAIN == 0 and back <= n < SMALL_FROM else n for n in numbers]
    return Batch(
        chosen,
        [user_of(number, users) for number in chosen],
        [text_of(number) for number in chosen],
        vectors_of(chosen, users),
    )


def user_of(number: int, users: int) -> str:
    """A memory's user: sessions of five, `TALKING` of them interleaved; each user has as many as any other."""
    turn, lane = divmod(number, TALKING)
    session = turn // A_SESSION * TALKING + lane
    return f"user-{session * 2_654_435_761 % users}"


def text_of(number: int) -> str:
    """A memory's text, of a few common words and many rare ones. A near-copy repeats the text of its source."""
    number -= TALKING * _is_repeated(number)
    chance = np.random.default_rng([SEED, 1, number])
    said = " ".join(f"word{place}" for place in (WORDS * chance.random(WORDS_A_TEXT) ** 3).astype(int))
    return f"User: I said thing {number}: {said}\nAssistant: noted"


def vectors_of(numbers: Sequence[int], users: int) -> Vectors:
    """Unit vectors, float32[n, d]. Every `AGAIN`th is close to that of the same user's memory of the turn before."""
    rows = np.empty((len(numbers), DIMENSION), np.float32)
    for place, number in enumerate(numbers):
        copied = _is_repeated(number)
        chance = np.random.default_rng([SEED, number - TALKING if copied else number])
        chance.standard_normal(out=rows[place], dtype=np.float32)
        rows[place, 0] += 1e-3 * copied
    return _unit(rows)


def _is_repeated(number: int) -> bool:
    """Whether it is a near-copy of what its user said the turn before."""
    return number % AGAIN == 1 and number // TALKING % A_SESSION > 0


def questions(size: int, users: int) -> list[tuple[str, Vectors, str]]:
    """User, vector and words of each question; users from all parts of the data, each once."""
    chance = np.random.default_rng(SEED)
    known = sorted({user_of(number, users) for number in range(0, size, max(1, size // 20_000))})
    asked = chance.choice(known, min(2 * USERS_ASKED, len(known)), replace=False)
    vectors = _unit(chance.standard_normal((len(asked), DIMENSION), np.float32))
    words = [f"what did I say of word{chance.integers(40)} and word{chance.integers(WORDS)}?" for _ in asked]
    return list(zip(asked.tolist(), vectors, words, strict=True))


def _unit(vectors: Vectors) -> Vectors:
    unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


class Store(Protocol):
    """One way to store memories. `prepared` is not counted as writing."""

    def prepared(self, batch: Batch) -> Any: ...

    def write(self, prepared: Any) -> None: ...

    def settle(self) -> None:
        """Do what the documentation advises between writing and searching."""

    def search(self, user: str, vector: Vectors) -> list[tuple[str, str]]:
        """(number, text) of the nearest memories, best first."""


class _Given:
    """A model that takes no time: it gets the vectors of questions in advance."""

    simultaneous = 1

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.vectors: dict[str, Vectors] = {}

    async def load(self) -> Model:
        return Model("random", self.dimension)

    async def embed(self, texts: Sequence[str], of: Side, attempt: int, *, urgent: bool) -> Vectors:
        return np.stack([self.vectors[text] for text in texts])

    async def close(self) -> None:
        pass


class _OneShard(OwnedShards):
    """A shard that is called directly."""

    def __init__(self, shard: Shard, models: Models) -> None:
        self.shard, self.models = shard, models

    async def call(
        self, partition: int, method: Callable[Concatenate[Shard, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return method(self.shard, *args, **kwargs)


class Siltstone:
    """The shard without the stream in front of it: it gets parsed events with their vectors."""

    def __init__(self, folder: Path, shard: Shard | None = None, dimension: int = DIMENSION) -> None:
        gc.set_threshold(*COLLECT_AFTER)
        self.shard = shard or Shard(0, folder / "0", "random", DIMENSION, LongTermSettings(), LifecycleSettings())
        self._folder, self._runner, self._given = folder, asyncio.Runner(), _Given(dimension)
        self._filled, self._filling = 0, 0.0
        clock = EventClock()
        clock.observe(FIRST_AT)
        embedding = Embedding(EmbeddingSettings(backend="use"))
        embedding._backend = self._given
        self._runner.run(self._start(embedding))
        self._recall = Recall(
            shards=_OneShard(self.shard, Models(embedding)),
            said=SaidLately(ShortTermStore(), clock, 1),
            event_log=EventLog(Outbox(), Topics.with_prefix("")),  # events about found memories are not sent
            metrics=Metrics(),
            clock=clock,
            partitions=1,
            lifecycle=LifecycleSettings(),
        )

    @staticmethod
    async def _start(embedding: Embedding) -> None:
        embedding.start()

    def prepared(self, batch: Batch) -> tuple[list[Promotion], dict[uuid.UUID, Vectors]]:
        events = [_promotion(*each) for each in zip(batch.numbers, batch.users, batch.texts, strict=True)]
        return events, {event.event_id: vector for event, vector in zip(events, batch.vectors, strict=True)}

    def write(self, prepared: tuple[list[Promotion], dict[uuid.UUID, Vectors]]) -> None:
        self.shard.apply(*prepared, FIRST_AT)

    def settle(self) -> None:
        """Fill search rows, as a worker does within a second after a batch if nothing else waits for the shard."""
        began = time.perf_counter()
        while filled := self.shard.rows.fill(AT_A_TIME):
            self._filled += filled
        self._filling += time.perf_counter() - began

    def search(self, user: str, vector: Vectors) -> list[tuple[str, str]]:
        memories = self.shard.memories_of(user)
        best = np.argsort(-self.shard.similarities(user, vector, memories), kind="stable")[:TOP]
        return [(memories[row].message_ids[0], memories[row].text) for row in best]

    def hybrid(self, user: str, vector: Vectors, words: str) -> list[str]:
        """The ids of the memories that Siltstone answers with: by vectors and words, in every state."""
        self._given.vectors = defaultdict(lambda: vector)
        query = Query(user, words, TOP, frozenset(State))
        return [str(hit.id) for hit in self._runner.run(self._recall.search(query))]

    def bytes_a_memory(self) -> Told:
        """Bytes on disk, with the index, and of ids in memory; and how many search rows were filled a second."""
        self.shard.save()
        catalog = self.shard._catalog
        catalog._db.execute("CHECKPOINT")
        held = self.shard.count()
        on_disk = sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())
        return {
            "filled_per_s": round(self._filled / max(self._filling, 1e-9)),
            "disk_bytes_a_memory": round(on_disk / held),
            "known_ids_bytes_a_memory": round(catalog.ids.nbytes / held, 1),
            "peak_resident_bytes_a_memory": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / held),
        }

    def recompute(self) -> Told:
        """Milliseconds of a recompute a minute after the last one, and of a scan of the columns that decide it."""
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

    def indexes(self, users: int) -> Told:
        """Milliseconds of the cosines of all memories of a user, with FAISS and by plain products; bytes of each.

        The products read the catalog's file of vectors, which FAISS's segments copy. Users are others than those who
        were searched for. `first` is for the first question of a user, with the files' pages as they are.
        """
        stored = self.shard._catalog._vectors
        assert stored.file_number is not None
        mapped = np.memmap(path_of(self._folder / "0", stored.file_number), np.dtype("<f4"), "r", HEAD_BYTES)
        vectors: Vectors = mapped.view(np.ndarray)[: len(mapped) // DIMENSION * DIMENSION].reshape(-1, DIMENSION)

        def slots_of(seqs: Seqs) -> tuple[Seqs, Seqs]:
            named = stored._named(seqs)
            return named.seqs, named.slots

        faiss, products = self.shard.index, ProductIndex(lambda: vectors, slots_of)
        faiss.flush()
        seqs = self.shard._catalog.seqs()
        cells = cells_of(self.shard._catalog.vectors_later(seqs)[0])
        filling, _ = _timed(products.fill, seqs, cells, stored.of, lambda done: None)
        asked = {user for user, _, _ in questions(self.shard.count(), users)}
        every = dict.fromkeys(user_of(number, users) for number in range(0, len(seqs), 97))
        told: Told = {"products_filled_s": round(filling, 2)}
        took: defaultdict[str, list[float]] = defaultdict(list)
        query = vectors[0].copy()
        for turn, user in enumerate([user for user in every if user not in asked][:USERS_ASKED]):
            cell, mine = cell_of(user), self.shard.held(user).seqs
            sides = [("faiss", faiss), ("products", products)]
            for name, side in sides if turn % 2 else sides[::-1]:
                first, by_one = _timed(side.similarities, cell, query, mine)
                again, _ = _timed(side.similarities, cell, query, mine)
                took[f"{name}_first_ms"].append(first)
                took[f"{name}_ms"].append(again)
                assert by_one.any()
        told |= {name: round(float(np.median(seconds)) * 1e3, 3) for name, seconds in took.items()}
        return told | {
            "faiss_bytes_a_memory": round(faiss.bytes / len(seqs)),
            "products_bytes_a_memory": round(products.bytes / len(seqs)),
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

    def __init__(self, folder: Path, once: bool = True) -> None:
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
    """LanceDB as its documentation shows it: writes of Arrow tables, searches with a filter before the search."""

    def __init__(self, folder: Path, once: bool = True) -> None:
        lancedb: Any = importlib.import_module("lancedb")
        schema = self.prepared(batch_of(range(1), 1)).schema
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
    """A store, and the same one with its plain append if that is another call."""

    name: str
    title: str
    open: Callable[[Path], Store]
    open_plain: Callable[[Path], Store] | None = None


CONTENDERS: Final = (
    Contender("siltstone", "Siltstone", Siltstone),
    Contender("chromadb", "ChromaDB", Chroma, lambda folder: Chroma(folder, once=False)),
    Contender("lancedb", "LanceDB", Lance, lambda folder: Lance(folder, once=False)),
)
PEERS: Final = tuple(contender.name for contender in CONTENDERS[1:])


@dataclass(slots=True)
class Run:
    """One contender's work in its process."""

    store: Store
    users: int
    limit_seconds: float
    size: int = 0
    #: The seconds of each batch.
    seconds: list[float] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)

    def fill(self, size: int) -> bool:
        """Write up to a size; False if the time ended before."""
        spent = sum(self.seconds)
        for first in range(self.size, size, BATCH):
            if spent > self.limit_seconds:
                return False
            numbers = range(first, min(first + BATCH, size))
            self.seconds.append(self.write(numbers))
            spent += self.seconds[-1]
            self.size = numbers.stop
        return True

    def write(self, numbers: range) -> float:
        prepared = self.store.prepared(batch_of(numbers, self.users))
        return _timed(self.store.write, prepared)[0]

    def measure(self, sizes: Sequence[int]) -> None:
        for size in sizes:
            in_time = self.fill(size)
            self.store.settle()
            told: Told = {"size": self.size, "write_per_s": round(self.size / sum(self.seconds))}
            told |= searches(self.store, questions(self.size, self.users))
            self.told.append(told)
            click.echo({key: value for key, value in told.items() if key != "found"}, err=True)
            if not in_time:
                return

    def small_batches(self) -> float:
        """Memories a second in batches of `SMALL_BATCH`, added to all existing ones."""
        starts = range(SMALL_FROM, SMALL_FROM + SMALL_BATCH * SMALL_BATCHES, SMALL_BATCH)
        took = [self.write(range(start, start + SMALL_BATCH)) for start in starts]
        return SMALL_BATCH / float(np.median(took))


def searches(store: Store, asked: Sequence[tuple[str, Vectors, str]]) -> Told:
    """Milliseconds of each user's first question and of later ones; the numbers of the found memories."""
    by_vector, by_both = asked[: len(asked) // 2], asked[len(asked) // 2 :]
    told: Told = {"found": []}

    def timed(name: str, work: Callable[..., Any], given: Sequence[tuple[Any, ...]]) -> list[Any]:
        answers = [_timed(work, *one) for one in given]
        p50, p99 = np.percentile([seconds * 1e3 for seconds, _ in answers], [50, 99])
        told.update({f"{name}_p50_ms": round(float(p50), 3), f"{name}_p99_ms": round(float(p99), 3)})
        return [answer for _, answer in answers]

    vectors = [(user, vector) for user, vector, _ in by_vector]
    found = timed("search_first", store.search, vectors)
    told["found"] = [[number for number, _ in hits] for hits in found]
    timed("search", store.search, vectors * QUESTIONS_AGAIN)
    if isinstance(store, Siltstone):
        timed("hybrid_first", store.hybrid, by_both)
        timed("hybrid", store.hybrid, list(by_both) * QUESTIONS_AGAIN)
    return told


def _timed(work: Callable[..., Any], *given: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work(*given)
    return time.perf_counter() - start, result


def measure(contender: Contender, sizes: Sequence[int], users: int, peer_seconds: float) -> Told:
    """Run a contender in its own process and folder; return its figures."""
    with tempfile.TemporaryDirectory() as folder:
        limit = peer_seconds if contender.name in PEERS else float("inf")
        done = subprocess.run(
            [
                *(sys.executable, "-W", "ignore", THIS_FILE, "contend"),
                *map(str, (contender.name, limit, users, *sizes)),
            ],
            check=False,
            stdout=subprocess.PIPE,
            cwd=folder,
            env=os.environ | SINGLE_THREADED,
        )
    if done.returncode:
        raise click.ClickException(f"{contender.title} ended with exit code {done.returncode}")
    told: Told = orjson.loads(done.stdout.splitlines()[-1])
    return told


def figures_of(told: dict[str, Told]) -> Figures:
    """The figures. Ratios of writes are at the size that a peer reached, those of searches at its last size."""
    ours = told["siltstone"]
    figures: Figures = {}
    for name, one in told.items():
        for at in one["sizes"]:
            prefix = f"{name}_{at['size']}_"
            figures |= {prefix + key: value for key, value in at.items() if key not in ("size", "found")}
        figures |= {f"{name}_{key}": one[key] for key in ("append_per_s", "write_small_per_s") if one.get(key)}
    largest = ours["sizes"][-1]
    for peer in PEERS:
        theirs = told[peer]
        last = theirs["sizes"][-1]
        batches = min(len(theirs["seconds"]), len(ours["seconds"]))
        took, mine = sum(theirs["seconds"][:batches]), sum(ours["seconds"][:batches])
        figures[f"write_ratio_{peer}"] = round(took / mine, 2)
        figures[f"write_ratio_{peer}_size"] = last["size"]
        figures[f"write_small_ratio_{peer}"] = round(ours["write_small_per_s"] / theirs["write_small_per_s"], 2)
        appended = APPENDED / sum(ours["seconds"][: APPENDED // BATCH])
        figures[f"append_ratio_{peer}"] = round(appended / theirs["append_per_s"], 2)
        both = next((at for at in ours["sizes"] if at["size"] == last["size"]), None)
        if both is not None:
            figures[f"same_hits_{peer}"] = _same(both["found"], last["found"])
        for name, of_ours in (("search", "search"), ("hybrid", "hybrid")):
            figures[f"{name}_ratio_{peer}"] = round(last["search_p50_ms"] / largest[f"{of_ours}_p50_ms"], 2)
        for name, of_ours in (("first_search", "hybrid_first"), ("first_vectors", "search_first")):
            figures[f"{name}_ratio_{peer}"] = round(last["search_first_p50_ms"] / largest[f"{of_ours}_p50_ms"], 2)
        figures[f"search_ratio_{peer}_size"] = last["size"]
    figures |= {key: value for key, value in ours.items() if key not in ("sizes", "seconds", "write_small_per_s")}
    figures["recompute_ratio_scan"] = round(ours["recompute_ms"] / ours["scan_ms"], 2)
    figures["size"] = largest["size"]
    return figures


def _same(mine: list[list[str]], theirs: list[list[str]]) -> float:
    """The share of hits that both found."""
    both = sum(len(set(a) & set(b)) for a, b in zip(mine, theirs, strict=True))
    return round(both / sum(map(len, mine)), 4)


def table(told: dict[str, Told], figures: Figures) -> Table:
    """A table with a row for each contender and size."""
    shown = Table(
        *("", "memories", "memories/s", "by 64/s", "appended/s", "search p50 ms", "p99 ms", "first p50 ms", "p99 ms"),
        title=f"One shard: {DIMENSION} numbers a vector, batches of {BATCH:,}",
        caption=f"Recompute of {figures['size']:,} memories: {figures['recompute_ms']} ms (the first one "
        f"{figures['recompute_first_ms']}), a scan {figures['scan_ms']} ms: {figures['recompute_ratio_scan']} ×",
    )
    for contender in CONTENDERS:
        one = told[contender.name]
        for place, at in enumerate(one["sizes"]):
            kinds = [("search", "search_first"), ("hybrid", "hybrid_first")]
            for kind in kinds[: 2 if "hybrid_p50_ms" in at else 1]:
                plain = kind[0] == "search"
                shown.add_row(
                    ("" if place else contender.title) if plain else "  by words as well",
                    f"{at['size']:,}" if plain else "",
                    f"{at['write_per_s']:,}" if plain else "",
                    *(
                        "" if place or not plain or not one.get(key) else f"{one[key]:,}"
                        for key in ("write_small_per_s", "append_per_s")
                    ),
                    *(f"{at[f'{name}_{q}_ms']:.2f}" for name in kind for q in ("p50", "p99")),
                )
    return shown


def sizes_of(memories: int) -> list[int]:
    """Powers of ten from 10,000 on, and the number itself."""
    return [size for size in (10_000, 100_000) if size < memories] + [memories]


@click.group(invoke_without_command=True)
@click.option("--memories", type=click.IntRange(min=APPENDED), default=1_000_000, show_default=True)
@click.option("--users", type=click.IntRange(min=1), help=f"Default: one for {MEMORIES_A_USER} memories.")
@click.option("--peer-seconds", default=180.0, show_default=True, help="The longest time that a peer writes.")
@click.option("--json", "as_json", is_flag=True, help="End with one line holding a JSON object.")
@click.pass_context
def main(context: click.Context, memories: int, users: int | None, peer_seconds: float, as_json: bool) -> None:
    """Compare writes, searches and the lifecycle with ChromaDB and LanceDB."""
    if context.invoked_subcommand:
        return
    users, told = users or max(1, memories // MEMORIES_A_USER), {}
    for contender in CONTENDERS:
        Console(stderr=True).print(f"{contender.title} …")
        told[contender.name] = measure(contender, sizes_of(memories), users, peer_seconds)
    figures = figures_of(told)
    figures["users"] = users
    Console().print(table(told, figures))
    if as_json:
        click.echo(orjson.dumps(figures))


@main.command(hidden=True)
@click.argument("name")
@click.argument("limit", type=float)
@click.argument("users", type=int)
@click.argument("sizes", type=int, nargs=-1, required=True)
def contend(name: str, limit: float, users: int, sizes: tuple[int, ...]) -> None:
    """Run one contender."""
    contender = next(contender for contender in CONTENDERS if contender.name == name)
    told: Told = {}
    if contender.open_plain is not None:
        plain = Run(contender.open_plain(Path("plain")), users, limit)
        plain.fill(APPENDED)
        told["append_per_s"] = round(plain.size / sum(plain.seconds))
    store = contender.open(Path("once"))
    run = Run(store, users, limit)
    run.measure(sizes)
    told |= {"sizes": run.told, "seconds": run.seconds, "write_small_per_s": round(run.small_batches())}
    if isinstance(store, Siltstone):
        told |= store.bytes_a_memory() | store.indexes(users) | store.recompute()
    click.echo(orjson.dumps(told))
    sys.stdout.flush()
    os._exit(0)  # the folder is deleted, so there is no use in saving the index of a million


if __name__ == "__main__":
    main()
