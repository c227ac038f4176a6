"""`siltstone demo`: chats become memories that answer questions, on a real broker and a real worker."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import httpx
import orjson
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from schemas.conversations import SessionEnded
from schemas.errors import BadRecord, SiltstoneError
from schemas.lifecycle import DAY_MS
from schemas.memories import Memory, State
from schemas.settings import Settings
from schemas.times import iso, parse_timestamp
from streams.app import Siltstone
from streams.doors.cli import running, show
from streams.doors.cli.client import json_option
from streams.doors.cli.demo_client import show_client
from streams.doors.cli.demo_summaries import days_summed_up, show_richest
from streams.doors.cli.ingest import said
from streams.doors.cli.ingest_line import ingest_line
from streams.doors.cli.process import run, write_as_let_in
from streams.kafka.bulk import producing
from streams.kafka.clients.broker import embedded_broker
from streams.runtime.clock import EventClock
from streams.telemetry.metrics import labelled
from tables.memories.shard import Shard

SAMPLES = Path(__file__).parent.parent.parent / "samples"
#: The demo shows the number of memories in each state at these times, in days from now.
LATER = (0, 30, 90, 365)
SHOWN_PROMOTIONS, SHOWN_QUESTIONS, SHOWN_EXCHANGES = 8, 8, 6
#: The demo fails if there is no progress for this number of seconds.
STALLED_SECONDS = 60.0
API_SECONDS = 30.0


def _time(_context: click.Context, _parameter: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    try:
        return parse_timestamp(int(value) if value.isdigit() else value)
    except ValueError as exc:
        raise click.BadParameter(str(exc)) from exc


@click.command()
@click.option(
    "--input",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Your own chats, one JSON message a line, instead of the bundled ones.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory for the memories.  [default: a new temporary directory]",
)
@click.option("--now", callback=_time, help="The time that counts as now.  [default: that of the newest message]")
@click.option("--keep", is_flag=True, help="Keep it running, with its dashboard, until Ctrl-C.")
@json_option
def demo(file: Path | None, data: Path | None, now: int | None, keep: bool, as_json: bool) -> None:
    """Watch chats become memories: an embedded broker, a worker, and a producer that sends real messages."""
    started = time.monotonic()
    chats = Chats.read(file or SAMPLES / "chats.jsonl")
    folder = data or Path(tempfile.mkdtemp(prefix="siltstone-demo-"))
    write_as_let_in(folder)
    console = Console(stderr=as_json, quiet=as_json, highlight=False)
    with embedded_broker() as broker:
        settings = Settings.load()
        settings = settings.model_copy(
            update={
                "data_dir": folder,
                "kafka": broker.settings(settings.kafka),
                "lifecycle": settings.lifecycle.model_copy(update={"clock": "event"}),
                "http": settings.http.model_copy(update={"port": 0}),
            }
        )
        questions = [] if file else orjson.loads((SAMPLES / "questions.json").read_bytes())

        servers = broker.bootstrap_servers

        def told(summary: dict[str, Any], dashboard: str) -> None:
            summary["seconds"] = round(time.monotonic() - started, 2)
            if as_json:
                show.as_json(summary | ({"dashboard": dashboard, "kafka": servers} if keep else {}))
                return
            console.print(f"The memories are in [bold]{folder}[/]; this took {summary['seconds']:.0f} s.")
            if keep:
                console.print(f"Look at them  [bold]{dashboard}[/]", soft_wrap=True)
                console.print(f"Say more      {ingest_line(servers)}", soft_wrap=True, markup=False)
                console.print("Ctrl-C stops it.")

        run(_run(settings, chats, questions, now, console, told, keep))


@dataclass(slots=True)
class Chats:
    """The records of a file with chats, and the facts about them that the demo shows.

    `lines` has the key and the value of each record. The key of an invalid line is None. `sessions` has the time of
    each session's newest record (epoch ms), by user and session. `asked` has the last message of each user.
    """

    lines: list[tuple[bytes | None, bytes]] = field(default_factory=list)
    sessions: dict[tuple[str, str], int] = field(default_factory=dict)
    ended: set[tuple[str, str]] = field(default_factory=set)
    asked: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path) -> Chats:
        """Read every line of the file, including invalid lines, which the worker then sends to the dead letters."""
        chats = cls()
        for line in file.read_bytes().splitlines():
            if line.strip():
                chats._add(line)
        if not chats.lines:
            raise SiltstoneError(f"there is no message in {file}")
        return chats

    def _add(self, line: bytes) -> None:
        try:
            record = said(line)
        except BadRecord:
            self.lines.append((None, line))
            return
        self.lines.append((record.user_id.encode(), line))
        session = record.user_id, record.session_id
        newest = max(record.timestamp, self.sessions.pop(session, 0))
        self.sessions[session] = newest  # the session is now the last one of the dict
        if isinstance(record, SessionEnded):
            self.ended.add(session)
        else:
            self.ended.discard(session)
            if record.role == "user":
                self.asked[record.user_id] = record.content

    def endings(self) -> list[tuple[bytes | None, bytes]]:
        """Return a `session_end` record for each session that is still open at the end of the file."""
        return [
            (user.encode(), orjson.dumps({"type": "session_end", "user_id": user, "session_id": s, "timestamp": at}))
            for (user, s), at in self.sessions.items()
            if (user, s) not in self.ended
        ]

    @property
    def newest(self) -> dict[str, int]:
        """The time of each user's newest message or session end (epoch ms), by user."""
        found: dict[str, int] = {}
        for (user, _), at in self.sessions.items():
            found[user] = max(at, found.get(user, 0))
        return found

    @property
    def newest_session(self) -> tuple[str, str] | None:
        return max(self.sessions, key=lambda session: self.sessions[session], default=None)


async def _run(
    settings: Settings,
    chats: Chats,
    questions: list[dict[str, Any]],
    now: int | None,
    console: Console,
    told: Callable[[dict[str, Any], str], None],
    keep: bool,
) -> None:
    """Run the demo, then call `told` with the results and the dashboard's address.

    If `keep`, the worker then continues to run until SIGINT or SIGTERM.
    """
    async with contextlib.AsyncExitStack() as stack:
        with console.status("Starting the broker and the worker …"):
            worker = await stack.enter_async_context(running.started(settings))
            await running.until_ready(worker)
        await _feed(worker, chats, console)
        if now is not None:
            assert isinstance(worker.clock, EventClock), "the demo's settings say so"
            worker.clock.go_to(now)
        await worker.jobs.lifecycle.recompute()
        at = now if now is not None else worker.clock.now()
        memories = [m for p in worker.shards.partitions() for m in await _memories(worker, p, chats)]
        api = await stack.enter_async_context(
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{worker.api.port}", trust_env=False, timeout=API_SECONDS)
        )
        with console.status("Summing up the days …"):
            summed = await days_summed_up(worker, api, chats.newest)
        if not console.quiet:
            await _show(worker, api, chats, questions, memories, at, console)
            await show_richest(worker, list(chats.newest), summed, console)
            if asked := _asked(chats, questions):
                await show_client(worker, asked[0], console)
        told({**await _summary(worker, at), "summaries": summed.written}, running.dashboard(worker))
        if keep:
            await running.until_interrupted(worker)


async def _feed(worker: Siltstone, chats: Chats, console: Console) -> None:
    """Produce all records, then wait until the worker has processed them and has stored the promoted memories."""
    records = [*chats.lines, *chats.endings()]
    bars = Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), console=console)
    with bars:
        produced = bars.add_task("messages produced ", total=len(records))
        async with producing(worker.settings.kafka) as producer:
            for key, line in records:
                await producer.send(key, line)
                bars.advance(produced)
        processed = bars.add_task("messages processed", total=len(records))
        ends = producer.ends  # a count would be wrong, because the worker adds silence records
        async for done in _progress(lambda: worker.hot.processed(worker.topics.conversations, ends), len(records)):
            bars.update(processed, completed=done)
        promoted = worker.metrics.promoted()
        kept = bars.add_task("memories written  ", total=promoted)
        async for done in _progress(worker.metrics.taken_in, promoted):
            bars.update(kept, completed=done)


async def _progress(measure: Any, total: int) -> AsyncIterator[int]:
    """Yield each new value of `measure()` until it is `total`.

    Raises `SiltstoneError` if the value does not change for `STALLED_SECONDS`.
    """
    done, since = -1, time.monotonic()
    while done < total:
        now = measure()
        if now != done:
            done, since = now, time.monotonic()
            yield min(done, total)
        elif time.monotonic() - since > STALLED_SECONDS:
            raise SiltstoneError(f"no progress for {STALLED_SECONDS:.0f} s, at {done} of {total}")
        else:
            await asyncio.sleep(0.05)


async def _memories(worker: Siltstone, partition: int, chats: Chats) -> list[Memory]:
    """Return the memories of the file's users that are in the partition's shard."""
    users = sorted({user for user, _ in chats.sessions})
    found: list[Memory] = []
    for user in users:
        if worker.context.partition_of(user) == partition:
            found += await worker.shards.call(partition, Shard.memories_of, user)
    return found


async def _summary(worker: Siltstone, at: int) -> dict[str, Any]:
    decisions = labelled(worker.metrics.decisions)
    counts = {
        outcome: sum(n for (kind, _), n in decisions.items() if kind == outcome)
        for outcome in ("promoted", "dropped")
    }
    by_state = await worker.service.state_counts(at)
    return {
        "messages": sum(labelled(worker.metrics.messages).values()),
        "exchanges": sum(labelled(worker.metrics.exchanges).values()),
        **counts,
        "dead_letters": sum(labelled(worker.metrics.dead_letters).values()),
        "memories": sum(by_state.values()),
        "by_reason": {reason: n for (_, reason), n in sorted(decisions.items())},
        "by_state": {state.value: n for state, n in by_state.items()},
    }


async def _show(
    worker: Siltstone,
    api: httpx.AsyncClient,
    chats: Chats,
    questions: list[dict[str, Any]],
    memories: list[Memory],
    at: int,
    console: Console,
) -> None:
    console.print()
    await _show_window(api, chats, console)
    _show_promotions(worker, memories, console)
    await _show_answers(api, _asked(chats, questions), console)
    await _show_states(worker, at, console)


def _asked(chats: Chats, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the demo's questions. If there are none, the last messages of up to three users are the questions."""
    return questions or [{"user_id": user, "question": said} for user, said in list(chats.asked.items())[-3:]]


async def _show_window(api: httpx.AsyncClient, chats: Chats, console: Console) -> None:
    if chats.newest_session is None:
        return
    user, session = chats.newest_session
    answer = await api.get(f"/v1/sessions/{session}/exchanges", params={"user_id": user, "limit": SHOWN_EXCHANGES})
    rows = [
        (e["started_at"][:16].replace("T", " "), show.plain("\n".join(m["content"] for m in e["messages"]), 200))
        for e in answer.raise_for_status().json()["exchanges"]
    ]
    title = f"Short-term window of session {session} ({user}): the newest exchanges"
    if rows:
        console.print(show.table(title, ("when (UTC)", "exchange"), rows))
    else:
        console.print(f"The window of session {session} ({user}) has expired: it has no exchange from the last day.")
    console.print()


def _show_promotions(worker: Siltstone, memories: list[Memory], console: Console) -> None:
    by_reason: dict[str, list[Memory]] = {}
    for memory in memories:
        by_reason.setdefault(memory.meta.get("promotion", {}).get("reason", memory.kind), []).append(memory)
    shown: list[Memory] = []
    while len(shown) < SHOWN_PROMOTIONS and any(by_reason.values()):
        shown += [group.pop(len(group) // 2) for group in by_reason.values() if group]
    rows = [
        (memory.user_id, show.plain(memory.text, 90), _why(memory), f"{memory.importance:.0f}")
        for memory in shown[:SHOWN_PROMOTIONS]
    ]
    title = "Some promotions to long-term memory, and why: fullness + feeling + content + value = total"
    console.print(show.table(title, ("user", "exchange", "why", ">importance"), rows))
    reasons = labelled(worker.metrics.decisions)
    counted = [(outcome, reason, n) for (outcome, reason), n in sorted(reasons.items(), reverse=True)]
    console.print()
    console.print(show.table("Outcomes of all exchanges", ("outcome", "reason", ">exchanges"), counted))
    console.print()


def _why(memory: Memory) -> str:
    """Return a text with the reason of a promotion. If the exchange was scored, add the parts of its score."""
    why = memory.meta.get("promotion", {})
    reason = why.get("reason", memory.kind)
    if "fullness" not in why or reason == "forced":
        return str(reason)
    parts = [why["fullness"], why["sentiment"], why["content"], why["total"]]
    full, feeling, content, total = (f"{part / 1000:.2f}" for part in parts)
    value = "" if why["value"] is None else f"+{why['value'] / 100:.2f}"
    return f"{reason}\n{full}+{feeling}+{content}{value} = {total}"


async def _show_answers(api: httpx.AsyncClient, asked: list[dict[str, Any]], console: Console) -> None:
    rows = []
    for question in asked[:SHOWN_QUESTIONS]:
        body = {"user_id": question["user_id"], "query": question["question"], "top_k": 1}
        body["include_short_term"] = False  # the table shows only memories
        answer = (await api.post("/v1/search", json=body)).raise_for_status().json()["results"]
        best = answer[0] if answer else None
        rows.append(
            (
                question["user_id"],
                show.plain(question["question"], 60),
                show.plain(best["memory"], 110) if best else "[dim]no active memory answers[/]",
                f"{best['relevance']:.2f}" if best else "–",
            )
        )
    console.print(
        show.table("Questions, and the memory that answers best", ("user", "question", "memory", ">rel."), rows)
    )
    console.print()


async def _show_states(worker: Siltstone, at: int, console: Console) -> None:
    rows = []
    for days in LATER:
        counts = await worker.service.state_counts(at + days * DAY_MS)
        when = "now" if days == 0 else f"+{days} days"
        rows.append((when, iso(at + days * DAY_MS)[:10], *(counts[state] for state in State)))
    columns = ("", "date", *(f">{show.state(state.value)}" for state in State))
    console.print(show.table("Memories by state, as time passes without any recall", columns, rows))
    console.print()
