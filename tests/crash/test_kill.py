"""A worker is killed in the middle of its work; its successor loses nothing and doubles nothing."""

from __future__ import annotations

import signal
import sys
from itertools import product
from pathlib import Path

import httpx
import pytest

from schemas.settings import Settings
from streams.kafka.bulk import producing
from streams.kafka.clients.broker import ensure_topics
from tests.support.making import line
from tests.support.ports import free_port
from tests.support.waiting import CLIENT_SECONDS, PATIENCE, until
from tests.support.workers import asked, sources, surely_asked, worker_process

pytestmark = pytest.mark.slow

MESSAGES, USERS = 20_000, 100
#: Each of eight shards may be in its first transaction, on its own thread; one that begins another has committed.
#: At the most eight thousand of the ten thousand exchanges are: a transaction has a thousand.
KILLED_AT, NTH = "rows are not committed", 9


async def test_twenty_thousand_messages_survive_a_kill(settings: Settings, tmp_path: Path) -> None:
    """SIGKILL between commits: afterwards every message is in exactly one memory."""
    expected = set()
    await ensure_topics(settings.kafka)
    async with producing(settings.kafka) as producer:
        for i in range(MESSAGES // USERS):
            for user in (f"user-{n}" for n in range(USERS)):
                await producer.send(user.encode(), line(i, user, ("user", "assistant")[i % 2], i))
                expected.add(f"{user}-{i}")
        for user in (f"user-{n}" for n in range(USERS)):
            await producer.send(user.encode(), line(0, user, "user", MESSAGES // USERS, type="session_end"))

    port = free_port()
    program = [sys.executable, "-m", "tests.crash.points", KILLED_AT, str(NTH), str(tmp_path / "mark")]
    with worker_process(settings, port, program=program) as first:
        await until(lambda: first.poll() is not None)
        assert first.returncode == -signal.SIGKILL
    assert (tmp_path / "mark").exists()
    assert 0 < len(sources(settings)) < MESSAGES  # it was in the middle

    with worker_process(settings, port) as second:
        await until(lambda: asked(port, "/v1/stats/states")["total"] >= MESSAGES // 2, alive=second)
        await until(
            lambda: set(asked(port, "/v1/stats/pipeline")["lag"].values()) == {0}, alive=second, seconds=300
        )  # a thousand summaries
        second.send_signal(signal.SIGTERM)
        assert second.wait(PATIENCE) == 0

    counted = sources(settings)
    assert counted.keys() == expected
    assert set(counted.values()) == {1}


async def test_short_term_memories_survive_a_kill_once_they_are_accepted(settings: Settings) -> None:
    """SIGKILL right after the last 202: all are there; of sessions that end, the important ones are promoted once."""
    users = [f"user-{n}" for n in range(20)]
    gone, still_here = users[:10], users[10:]
    port = free_port()
    with worker_process(settings, port) as first:
        await until(lambda: asked(port, "/readyz").get("ready"), alive=first)
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=CLIENT_SECONDS
        ) as client:
            for user, importance in product(users, (50, 70)):
                note = {"user_id": user, "session_id": "s", "kind": "short_term", "importance": importance}
                answer = await client.post("/v1/memories", json={**note, "text": f"{importance} of {user}"})
                assert answer.status_code == 202
        async with producing(settings.kafka) as producer:
            for user in gone:
                await producer.send(
                    user.encode(), b'{"type": "session_end", "user_id": "%b", "session_id": "s"}' % user.encode()
                )
        first.send_signal(signal.SIGKILL)
        first.wait()

    with worker_process(settings, port) as second:
        await until(lambda: asked(port, "/v1/stats/states")["total"] >= len(gone), alive=second)
        for user in users:
            shown = surely_asked(port, f"/v1/sessions/s/memories?user_id={user}")["memories"]
            kept = [f"50 of {user}", f"70 of {user}"] if user in still_here else []
            assert sorted(note["memory"] for note in shown) == kept
        await until(lambda: set(asked(port, "/v1/stats/pipeline")["lag"].values()) == {0}, alive=second)
        for user in gone:
            (promoted,) = surely_asked(port, f"/v1/memories?user_id={user}")["memories"]
            assert promoted["memory"] == f"70 of {user}"
        assert surely_asked(port, "/v1/stats/states")["total"] == len(gone)
        second.send_signal(signal.SIGTERM)
        assert second.wait(PATIENCE) == 0
