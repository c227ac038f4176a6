"""Intake in messages a second, compared with a plain Faust agent and Quix Streams.

    python benchmarks/intake.py [--rounds 5] [--messages 200000] [--partitions 4] [--summaries off]
                                [--bootstrap-servers HOST:PORT [--replication 3]] [--json] [--ui]

In each round the contenders run one after the other on the same new embedded broker, or on the given Kafka, each in
its own process and on a topic that is filled before it starts; every other round runs in reverse order. Ratios are
computed within a round, and their median counts: a machine's speed changes more between rounds than within one.
Processor time is that of the contender's own process from its first record on; Siltstone's embedding model runs in
another process, which is not included.

A rate is messages ÷ seconds from the first record that is processed until the consumer group's committed offsets,
read back from the broker, are the ends of all partitions. So it includes the writes before a commit, but not the time
to join the group. Each contender is asked to commit as soon as it has seen its last record, regardless of its commit
interval.

A plain Faust agent would need minutes for 200,000 messages; it gets at most 20,000. They are of fewer users, in
conversations of the same length, so a message costs the same as in the full run. Siltstone with a tenth of the window
runs in the first round only.

With `--ui` the other contenders are left out: Siltstone is compared with Siltstone under an open dashboard, which
requests the overview's numbers every two seconds and its charts every five.
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split

import asyncio
import contextlib
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest import mock

import aiokafka
import click
import faust
import orjson
from aiokafka.errors import KafkaError
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.load.topics import TOLD, deleted_afterwards, of_its_own
from schemas.errors import SiltstoneError
from schemas.settings import AgentsSettings, EmbeddingSettings, HttpSettings, KafkaSettings, MemorySettings, Settings
from schemas.settings.agents import SummarySettings
from schemas.times import iso
from schemas.topic_specs import topic_specs
from schemas.topics import Topics, key_of, partition_of
from streams.app import Siltstone
from streams.doors.cli import running
from streams.doors.cli.process import configure_logging, run
from streams.intake.agent import ShortTermAgent
from streams.kafka.clients.broker import admin_client, create_missing, embedded_broker
from streams.telemetry.metrics import labelled

Figures = dict[str, float | int | None]

THIS_FILE: Final = str(Path(__file__).resolve())
LOOKING: Final = str(Path(__file__).resolve().parent / "load" / "looking.py")

SEED: Final = 20_250_301
MESSAGES_A_USER: Final = 200
SESSIONS_A_USER: Final = 2
TURNS_KEPT: Final = 50

PLAIN_FAUST_MESSAGES: Final = 20_000
"""The most messages that the plain Faust agent gets."""

DEADLINE_SECONDS: Final = 300.0
POLL_SECONDS: Final = 0.02

FIRST_AT: Final = 1_740_787_200_000
MEAN_GAP_MS: Final = 6_000
"""The mean time between two messages of a session."""

WORTHY: Final = 0.055
"""The share of exchanges that say something about the user."""

# fmt: off
SMALL_TALK: Final = (
    ("Could you check this paragraph for spelling mistakes before I hand it in?",
     "There are two: a doubled letter in the first line, and a missing comma near the end of the second."),
    ("What is the difference between a list and a tuple in Python?",
     "A list can be changed after it was made, a tuple cannot; that is why only tuples can be dictionary keys."),
    ("How long do eggs take until they are hard?",
     "About nine minutes from the moment the water boils, then straight into cold water."),
    ("Thanks, that was quick. Anything else that I should know?",
     "Not for now. Tell me when you get stuck, and we go on from there."),
    ("帮我看看这段话有没有错别字，谢谢！", "有两处：第一行多了一个字，第二行末尾少了一个逗号，其他都没有问题。"),
    ("列表和元组到底有什么区别？", "列表创建之后还可以修改，元组不可以，所以只有元组能作为字典的键来使用。"),
    ("今天天气怎么样，要带伞吗？", "上午多云，下午有小雨，出门的话最好带一把伞，晚上会转晴。"),
    ("好的，谢谢你的说明。", "不客气，有其他问题随时再问，随时都可以继续。"),
)
ABOUT_ME: Final = (
    ("By the way, I love {thing} and I have lived in {place} since {year}.",
     "Good to know. I will keep it in mind when we talk about {thing} again."),
    ("My birthday is on {day} May, and my sister wants to go to {place} with me.",
     "That sounds lovely. Shall we look for something around {thing} there?"),
    ("我喜欢{thing}，{year}年起就住在{place}了。", "知道了，以后聊到{thing}的时候会想到这一点。"),
    ("我的生日是五月{day}日，想和妹妹一起去{place}。", "听起来不错，要不要顺便安排一下{thing}？"),
)
# fmt: on
THINGS: Final = ("hiking", "jazz", "chess", "baking", "climbing", "摄影", "书法", "钓鱼", "游泳", "围棋")
PLACES: Final = ("Lisbon", "Oslo", "Turin", "Kyoto", "Leeds", "杭州", "成都", "青岛", "厦门", "昆明")


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to do the job. `run(job)` works until `job.over()` and leaves its figures in `job`.

    It runs in the first `rounds` rounds, or in all if `rounds` is None.
    """

    name: str
    title: str
    run: Callable[[Job], None]
    limit: int | None = None
    rounds: int | None = None


class Job:
    """The input of a contender's process, and its output: one JSON line when its input closes."""

    def __init__(self, kafka: KafkaSettings, messages: int, summaries: bool) -> None:
        self.kafka, self.messages, self.summaries = kafka, messages, summaries
        self.topic = topic_of(kafka)
        self.folder = Path.cwd()
        self.figures: dict[str, float | int] = {"seen": 0}
        self.closed = threading.Event()
        threading.Thread(target=self._wait, daemon=True).start()

    def see(self, messages: int = 1) -> None:
        """Count messages before they are processed. The first ones start the clock, which all processes share."""
        if not self.figures["seen"]:
            self.figures["first_at"] = time.monotonic()
            self.figures["cpu_seconds"] = -time.process_time()
        self.figures["seen"] += messages

    @property
    def all_seen(self) -> bool:
        return self.figures["seen"] >= self.messages

    async def over(self, commit: Callable[[], Any]) -> None:
        """Wait until the end; request commits once all messages are seen."""
        while not self.closed.is_set():
            await asyncio.sleep(POLL_SECONDS)
            if self.all_seen:
                await commit()

    def _wait(self) -> None:
        sys.stdin.read()
        self.figures["cpu_seconds"] = self.figures.get("cpu_seconds", 0.0) + time.process_time()
        self.closed.set()


def run_siltstone(job: Job, capacity: int = TURNS_KEPT, looked_at: bool = False) -> None:
    """The worker as `siltstone worker` runs it: default settings, with long-term writes at the same time."""
    handle = ShortTermAgent.handle

    async def seen_and_handled(agent: ShortTermAgent, partition: int, records: Sequence[Any]) -> None:
        job.see(len(records))
        await handle(agent, partition, records)

    async def work() -> None:
        settings = Settings(
            data_dir=job.folder,
            kafka=job.kafka,
            http=HttpSettings(port=0),
            embedding=EmbeddingSettings(backend="use"),
            memory=MemorySettings(capacity=capacity),
            agents=AgentsSettings(summary=SummarySettings(enabled=job.summaries)),
        )
        async with running.started(settings) as worker, _looked_at(job, worker.api.url if looked_at else ""):
            ends = [
                asyncio.ensure_future(job.over(lambda: worker.context.faust.consumer.commit())),
                asyncio.ensure_future(worker.stopped()),  # raises the error that stopped it
            ]
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for end in done:
                await end
            ends[-1].cancel()
            job.figures["promoted"] = worker.metrics.promoted()
            job.figures["stored"] = _stored(worker)

    configure_logging("WARNING")
    with mock.patch.object(ShortTermAgent, "handle", seen_and_handled):
        run(work())


@contextlib.asynccontextmanager
async def _looked_at(job: Job, url: str) -> AsyncIterator[None]:
    """A separate process polls the dashboard at `url` while the block lasts; without a URL, nothing does."""
    if not url:
        yield
        return
    looking = await asyncio.create_subprocess_exec(
        *(sys.executable, LOOKING, url), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield
    finally:
        answers, _ = await looking.communicate(b"")
        job.figures["looks"] = int(answers or 0)


def run_looked_at(job: Job) -> None:
    """Siltstone, while a client polls its overview."""
    run_siltstone(job, looked_at=True)


def run_short_window(job: Job) -> None:
    """Siltstone with a tenth of the window: the bytes that a message writes must not depend on the window."""
    run_siltstone(job, capacity=TURNS_KEPT // 10)


def _stored(worker: Siltstone) -> int:
    effects = labelled(worker.metrics.memories)
    return effects.get(("new",), 0) + effects.get(("merged",), 0)


class Turn(faust.Record):
    """A chat message, as Faust's documentation models values."""

    user_id: str
    session_id: str
    message_id: str
    role: str
    content: str
    timestamp: str
    agent_id: str


def run_plain_faust(job: Job) -> None:
    """Faust as its documentation shows it: one event for each message, and a table whose changelog Faust writes.

    The time-outs are not the defaults: with those, joining a group takes half a minute on this broker.
    """

    async def work() -> None:
        app = faust.App(
            job.kafka.group_id,
            broker=f"kafka://{job.kafka.bootstrap_servers}",
            store="memory://",
            datadir=str(job.folder),
            topic_partitions=job.kafka.partitions,
            topic_replication_factor=job.kafka.replication,
            web_enabled=False,
            broker_session_timeout=job.kafka.session_timeout_seconds,
            broker_rebalance_timeout=job.kafka.rebalance_timeout_seconds,
            broker_heartbeat_interval=job.kafka.heartbeat_seconds,
        )
        windows = app.Table("windows", default=list, partitions=job.kafka.partitions)

        async def keep(turns: Any) -> None:
            async for turn in turns:
                job.see()
                said = {"id": turn.message_id, "role": turn.role, "text": turn.content, "at": turn.timestamp}
                windows[turn.session_id] = [*windows[turn.session_id], said][-TURNS_KEPT:]

        app.agent(app.topic(job.topic, key_type=str, value_type=Turn))(keep)
        await app.start()
        await job.over(app.consumer.commit)
        await app.stop()

    configure_logging("WARNING")
    asyncio.run(work())


def run_quixstreams(job: Job) -> None:
    """Quix Streams as its documentation shows it: a stateful function for each message, a changelog for the state.

    State is kept by the record's key, the user; a session is a key within it. The time-outs are not the defaults:
    with those, joining a group takes minutes on this broker.
    """
    from quixstreams import Application

    def keep(turn: dict[str, Any], state: Any) -> dict[str, Any]:
        job.see()
        said = {"id": turn["message_id"], "role": turn["role"], "text": turn["content"], "at": turn["timestamp"]}
        turns = state.get(turn["session_id"], default=[])
        turns.append(said)
        state.set(turn["session_id"], turns[-TURNS_KEPT:])
        return turn

    app = Application(
        broker_address=job.kafka.bootstrap_servers,
        consumer_group=job.kafka.group_id,
        auto_offset_reset="earliest",
        state_dir=job.folder,
        loglevel="WARNING",
        consumer_extra_config={"session.timeout.ms": 6_000, "max.poll.interval.ms": 10_000},
    )
    frame = app.dataframe(app.topic(job.topic, value_deserializer="json"))
    frame.apply(keep, stateful=True)
    app.run(count=job.messages, collect=False)  # commits, and returns
    job.closed.wait()


CONTENDERS: Final = (
    Contender("siltstone", "Siltstone", run_siltstone),
    Contender("short-window", "Siltstone, 5 exchanges in a window", run_short_window, rounds=1),
    Contender("plain-faust", "plain Faust agent", run_plain_faust, PLAIN_FAUST_MESSAGES),
    Contender("quixstreams", "Quix Streams", run_quixstreams),
)
#: The contenders of `--ui`.
WATCHED: Final = (
    Contender("siltstone", "Siltstone", run_siltstone),
    Contender("looked-at", "Siltstone, dashboard open", run_looked_at),
)


def conversations(messages: int) -> Iterator[tuple[str, bytes]]:
    """(user, record) in the order of the log: sessions interleave at random, roles alternate."""
    chance = random.Random(SEED)
    users = max(1, round(messages / MESSAGES_A_USER))
    sessions = users * SESSIONS_A_USER
    said, answers, spoken_at = [0] * sessions, [""] * sessions, [FIRST_AT] * sessions
    for _ in range(messages):
        session = chance.randrange(sessions)
        turn = said[session]
        said[session] += 1
        spoken_at[session] += round(chance.uniform(0.2, 1.8) * MEAN_GAP_MS)
        if turn % 2 == 0:
            content, answers[session] = _exchange(chance)
        user_id = f"user-{session // SESSIONS_A_USER:05}"
        record = {
            "user_id": user_id,
            "session_id": f"{user_id}-{session % SESSIONS_A_USER}",
            "message_id": f"m-{session:05}-{turn:05}",
            "role": "assistant" if turn % 2 else "user",
            "content": answers[session] if turn % 2 else content,
            "timestamp": iso(spoken_at[session]),
            "agent_id": "assistant",
        }
        yield user_id, orjson.dumps(record)


def _exchange(chance: random.Random) -> tuple[str, str]:
    """What a user says, and the answer."""
    if chance.random() >= WORTHY:
        return chance.choice(SMALL_TALK)
    user, assistant = chance.choice(ABOUT_ME)
    slots: dict[str, object] = {
        "thing": chance.choice(THINGS),
        "place": chance.choice(PLACES),
        "year": chance.randrange(1970, 2025),
        "day": chance.randrange(1, 32),
    }
    return user.format(**slots), assistant.format(**slots)


def topic_of(kafka: KafkaSettings) -> str:
    """The topic that a contender reads."""
    return Topics.with_prefix(kafka.topic_prefix).conversations


async def produce(kafka: KafkaSettings, messages: int) -> dict[int, int]:
    """Fill the topic of conversations; return the number of records in each partition."""
    topic = topic_of(kafka)
    # Quix Streams asks for the retention, and the embedded broker has no default.
    await create_missing(kafka, [replace(spec, retention_ms=-1) for spec in topic_specs(kafka) if spec.name == topic])
    counts = dict.fromkeys(range(kafka.partitions), 0)
    acknowledged: list[asyncio.Future[Any]] = []
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, max_batch_size=262_144)
    async with producer:
        open_batches = {partition: producer.create_batch() for partition in counts}

        async def flush(partition: int) -> None:
            open_batches[partition].close()
            sent = await producer.send_batch(open_batches[partition], topic, partition=partition)
            acknowledged.append(sent)
            open_batches[partition] = producer.create_batch()

        for user_id, value in conversations(messages):
            partition, key = partition_of(user_id, kafka.partitions), key_of(user_id)
            if open_batches[partition].append(key=key, value=value, timestamp=None) is None:
                await flush(partition)
                open_batches[partition].append(key=key, value=value, timestamp=None)
            counts[partition] += 1
        for partition in counts:
            if open_batches[partition].record_count():
                await flush(partition)
        await asyncio.gather(*acknowledged)
    return counts


async def measure(
    contender: Contender, kafka: KafkaSettings, messages: int, summaries: bool
) -> dict[str, float | int]:
    """Run a contender on its own topic; return its figures, its rate and the size of its changelogs."""
    counts = await produce(kafka, messages)
    with tempfile.TemporaryDirectory() as folder:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "ignore", THIS_FILE, "contend", contender.name),
            *(kafka.model_dump_json(include=TOLD), str(messages), str(int(summaries))),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=folder,
            env={name: value for name, value in os.environ.items() if not name.startswith("SILTSTONE_")},
        )
        try:
            committed_at = await _committed(child, contender, kafka, counts)
            output, _ = await asyncio.wait_for(child.communicate(b""), DEADLINE_SECONDS)
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
    told: dict[str, float | int] = orjson.loads(output.splitlines()[-1])
    told["seen"] = min(told["seen"], messages)  # messages that are read twice count once
    told["per_s"] = round(told["seen"] / (committed_at - told["first_at"]))
    told["cpu_us"] = round(told["cpu_seconds"] / told["seen"] * 1e6, 2)
    told["changelog_bytes"] = await _changelog_bytes(kafka)
    return told


async def _committed(
    child: asyncio.subprocess.Process, contender: Contender, kafka: KafkaSettings, counts: dict[int, int]
) -> float:
    """The time at which the group has committed all produced records. ListOffsets is not used, see `broker.py`."""
    ends = {aiokafka.TopicPartition(topic_of(kafka), p): count for p, count in counts.items() if count}
    deadline = time.monotonic() + DEADLINE_SECONDS
    async with admin_client(kafka) as admin:
        while True:
            found = await admin.list_consumer_group_offsets(kafka.group_id, partitions=list(ends))
            now = time.monotonic()
            if all(tp in found and found[tp].offset >= end for tp, end in ends.items()):
                return now
            if child.returncode is not None:
                raise click.ClickException(f"{contender.title} ended with exit code {child.returncode}")
            if now > deadline:
                raise click.ClickException(f"{contender.title} did not commit everything in {DEADLINE_SECONDS} s")
            await asyncio.sleep(POLL_SECONDS)


async def _changelog_bytes(kafka: KafkaSettings) -> int:
    """Bytes of the keys and values in the changelogs of the group."""
    async with admin_client(kafka) as admin:
        names = [name for name in await admin.list_topics() if kafka.group_id in name and "changelog" in name]
    if not names:
        return 0
    consumer = aiokafka.AIOKafkaConsumer(
        *names, bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest", fetch_max_bytes=2**24
    )
    size = 0
    async with consumer:
        while fetched := await consumer.getmany(timeout_ms=1_000):
            for records in fetched.values():
                size += sum(len(record.key or b"") + len(record.value or b"") for record in records)
    return size


Round = dict[str, dict[str, float | int]]


class Work(NamedTuple):
    """The work of each contender, and its Kafka; without servers, each round has its own embedded broker."""

    messages: int
    partitions: int
    summaries: bool = True
    bootstrap_servers: str = ""
    replication: int = 1
    ui: bool = False

    @property
    def contenders(self) -> Sequence[Contender]:
        return WATCHED if self.ui else CONTENDERS

    @contextlib.contextmanager
    def broker(self) -> Iterator[str]:
        """The address of the broker while the block lasts."""
        if self.bootstrap_servers:
            yield self.bootstrap_servers
            return
        with embedded_broker() as broker:
            yield broker.bootstrap_servers


async def measure_round(number: int, work: Work, say: Callable[[str], None]) -> Round:
    """The figures of each contender of the round, by name."""
    told = {}
    contenders = [contender for contender in work.contenders if contender.rounds is None or number < contender.rounds]
    with work.broker() as servers:
        for contender in contenders if number % 2 == 0 else reversed(contenders):
            given = min(work.messages, contender.limit or work.messages)
            kafka = of_its_own(f"intake-{contender.name}", servers, work.partitions, work.replication)
            async with deleted_afterwards(kafka):
                told[contender.name] = found = await measure(contender, kafka, given, work.summaries)
            say(f"round {number + 1}: {contender.title}: {found['per_s']:,} messages/s, {found['cpu_us']} µs each")
    return told


async def measure_all(rounds: int, work: Work, say: Callable[[str], None]) -> Figures:
    told = [await measure_round(number, work, say) for number in range(rounds)]
    if work.ui:
        return looked_at_figures(told)

    def median(name: str, figure: str) -> float:
        return statistics.median(one[name][figure] for one in told)

    def ratio(name: str, figure: str) -> float:
        """Ours divided by theirs, in the same round."""
        return round(statistics.median(one["siltstone"][figure] / one[name][figure] for one in told), 2)

    ours, plain, quix, short = (told[0][name] for name in ("siltstone", "plain-faust", "quixstreams", "short-window"))
    return {
        "rounds": rounds,
        "messages_per_s": round(median("siltstone", "per_s")),
        "plain_faust_per_s": round(median("plain-faust", "per_s")),
        "quixstreams_per_s": round(median("quixstreams", "per_s")),
        "ratio_plain_faust": ratio("plain-faust", "per_s"),
        "ratio_quixstreams": ratio("quixstreams", "per_s"),
        "cpu_us_per_message": round(median("siltstone", "cpu_us"), 2),
        "plain_faust_cpu_us_per_message": round(median("plain-faust", "cpu_us"), 2),
        "quixstreams_cpu_us_per_message": round(median("quixstreams", "cpu_us"), 2),
        "ratio_cpu_plain_faust": ratio("plain-faust", "cpu_us"),
        "ratio_cpu_quixstreams": ratio("quixstreams", "cpu_us"),
        "messages": ours["seen"],
        "plain_faust_messages": plain["seen"],
        "quixstreams_messages": quix["seen"],
        "promoted": ours["promoted"],
        "stored_meanwhile": ours["stored"],
        "changelog_bytes_per_message": round(ours["changelog_bytes"] / ours["seen"]),
        "plain_faust_changelog_bytes_per_message": round(plain["changelog_bytes"] / plain["seen"]),
        "quixstreams_changelog_bytes_per_message": round(quix["changelog_bytes"] / quix["seen"]),
        "short_window_per_s": short["per_s"],
        "short_window_cpu_us_per_message": short["cpu_us"],
        "short_window_messages": short["seen"],
        "ratio_short_window": round(ours["per_s"] / short["per_s"], 2),
        "short_window_changelog_bytes_per_message": round(short["changelog_bytes"] / short["seen"]),
    }


def looked_at_figures(told: Sequence[Round]) -> Figures:
    """The cost of an open dashboard: rate and processor time, divided by those without one in the same round."""

    def ratio(figure: str) -> float:
        return round(statistics.median(one["looked-at"][figure] / one["siltstone"][figure] for one in told), 3)

    return {
        "rounds": len(told),
        "messages": told[0]["siltstone"]["seen"],
        "messages_per_s": round(statistics.median(one["siltstone"]["per_s"] for one in told)),
        "looked_at_per_s": round(statistics.median(one["looked-at"]["per_s"] for one in told)),
        "looks": round(statistics.median(one["looked-at"]["looks"] for one in told)),
        "ratio_ui": ratio("per_s"),
        "ratio_cpu_ui": ratio("cpu_us"),
    }


def looked_at_table(figures: Figures) -> Table:
    shown = Table("", "messages/s", "ratio", title=f"Intake with an open dashboard; {figures['rounds']} rounds")
    shown.add_row("Siltstone", f"{figures['messages_per_s']:,}", "")
    shown.add_row("… dashboard open", f"{figures['looked_at_per_s']:,}", f"{figures['ratio_ui']} ×")
    shown.caption = f"{figures['looks']} answers a run; {figures['ratio_cpu_ui']} × the processor time a message"
    return shown


def table(figures: Figures) -> Table:
    """A table with a row for each contender."""
    shown = Table(
        *("", "messages", "messages/s", "Siltstone is", "CPU µs/message", "changelog bytes/message"),
        title="Intake: the last turns of each session, changelog written, offsets committed; medians of "
        f"{figures['rounds']} rounds",
        caption=f"{figures['promoted']:,} exchanges promoted, {figures['stored_meanwhile']:,} of them already in "
        "long-term memory at the end",
    )
    for contender in CONTENDERS:
        name = contender.name.replace("-", "_")
        ours = name == "siltstone"
        prefix = "" if ours else f"{name}_"
        shown.add_row(
            contender.title,
            f"{figures[f'{prefix}messages']:,}",
            f"{figures['messages_per_s' if ours else f'{name}_per_s']:,}",
            "" if ours else f"{figures[f'ratio_{name}']} ×",
            f"{figures[f'{prefix}cpu_us_per_message']}",
            f"{figures[f'{prefix}changelog_bytes_per_message']:,}",
        )
    return shown


@click.group(invoke_without_command=True)
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(min=1))
@click.option("--messages", default=200_000, show_default=True, type=click.IntRange(min=1))
@click.option("--partitions", default=4, show_default=True, type=click.IntRange(min=1))
@click.option("--summaries", type=click.Choice(["on", "off"]), default="on", help="Siltstone's daily summaries.")
@click.option("--bootstrap-servers", default="", help="Your own Kafka, instead of the embedded broker.")
@click.option(
    "--replication", default=1, show_default=True, type=click.IntRange(1, 9), help="Replicas on your own Kafka."
)
@click.option("--ui", is_flag=True, help="Compare with an open dashboard instead of the others.")
@click.option("--json", "as_json", is_flag=True, help="End with one line holding a JSON object.")
@click.pass_context
def main(
    context: click.Context,
    rounds: int,
    messages: int,
    partitions: int,
    summaries: str,
    bootstrap_servers: str,
    replication: int,
    ui: bool,
    as_json: bool,
) -> None:
    """Compare the intake of conversations with a plain Faust agent and Quix Streams."""
    if context.invoked_subcommand:
        return
    errors = Console(stderr=True)
    work = Work(messages, partitions, summaries == "on", bootstrap_servers, replication, ui)
    try:
        figures = run(measure_all(rounds, work, errors.print))
    except SiltstoneError as exc:
        raise click.ClickException(str(exc)) from exc
    except KafkaError as exc:
        raise click.ClickException(f"the broker refuses the records: {exc!r}") from exc
    Console().print(looked_at_table(figures) if ui else table(figures))
    if as_json:
        click.echo(orjson.dumps(figures))


@main.command(hidden=True)
@click.argument("name")
@click.argument("kafka")
@click.argument("messages", type=int)
@click.argument("summaries", type=int)
def contend(name: str, kafka: str, messages: int, summaries: int) -> None:
    """Run one contender, until standard input closes."""
    contender = next(contender for contender in (*CONTENDERS, *WATCHED) if contender.name == name)
    job = Job(KafkaSettings.model_validate_json(kafka), messages, bool(summaries))
    contender.run(job)
    click.echo(orjson.dumps(job.figures))


if __name__ == "__main__":
    main()
