"""People who say something, and how long it took until a question found it.

Samples of what is *promoted* ask for it to be remembered, and look for it in long-term memory alone:

    user       Please remember that the red locker in Oslo opens with 90210.
    assistant  I will remember that.
    (a second later)
    user       Thank you. What else is there to do today?

The clock starts when the third message, which closes the exchange, is due. Samples of what is *said* mention it, and
look for it wherever it is:

    user       By the way, the red locker in Oslo opens with 90210.

The clock starts when that message is due. Of every second one the session is said to be over, so that promotion has
decided on it: what it drops must be found as soon as what it keeps.

Each is a user of its own, at a time that was set before. Questions are asked at set times, each 1.7 times (of what
is said 1.3 times) as late as the one before and each in other words, so none is answered out of a cache; a sample
that is found is not asked about again. The first time is another one for each of eight samples in turn, so that
together they look at all moments. A sample's time is that at which the answer was read: what lay between the last
question in vain and the one that was answered counts as age.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import httpx
import numpy as np
import orjson

from benchmarks.load.open_loop import OpenLoop, Record
from schemas.times import iso
from schemas.topics import key_of, partition_of

#: Between what is to be remembered and the message that closes its exchange.
PAUSE_SECONDS: Final = 1.0
PHASES: Final = 8
GIVE_UP_SECONDS: Final = 30.0


class What(NamedTuple):
    """What samples look for: when the first question comes, how much later each next one, messages in the log."""

    name: str
    first_question_seconds: float
    later_by: float
    messages: int


PROMOTED: Final = What("promoted", 0.1, 1.7, 3)
SAID: Final = What("said", 0.03, 1.3, 1)
WHAT: Final = {what.name: what for what in (PROMOTED, SAID)}

COLOURS: Final = ("red", "blue", "green", "grey", "yellow", "white", "black", "brown", "orange", "violet", "pink")
THINGS: Final = ("locker", "bike", "suitcase", "gate", "safe", "garage", "cupboard", "studio", "mailbox", "shed")
PLACES: Final = (
    "Oslo",
    "Leeds",
    "Turin",
    "Kyoto",
    "Lisbon",
    "Bergen",
    "Graz",
    "Porto",
    "Lyon",
    "Bonn",
    "Cork",
    "Riga",
)
QUESTIONS: Final = (
    "Which code opens the {thing}?",
    "How do I open the {thing}?",
    "What was the code of the {thing} again?",
    "I forgot the number for the {thing}, what is it?",
    "Tell me the code for the {thing}, please.",
    "What do I have to dial at the {thing}?",
    "The {thing} is locked: which digits?",
    "Do you know what opens the {thing}?",
)


class Samples:
    """`count` of them, spread evenly over a load."""

    def __init__(
        self, loop: OpenLoop, http: httpx.AsyncClient, partitions: int, count: int, what: What = PROMOTED
    ) -> None:
        self._loop, self._http, self._partitions, self.count, self.what = loop, http, partitions, count, what
        self.found: list[float] = []
        self.question_seconds: list[float] = []
        self.missing = self.unanswered = 0

    async def take(self, seconds: float) -> None:
        """Begin one after the other within so many seconds; returns when each is found, or given up."""
        begun = time.time()
        async with asyncio.TaskGroup() as under_way:
            for number in range(self.count):
                at = begun + number * max(0.0, seconds - PAUSE_SECONDS) / self.count
                await _until(at)
                under_way.create_task(self._one(number, at))

    async def _one(self, number: int, at: float) -> None:
        user = f"sample-{number}"
        thing = f"{COLOURS[number % 11]} {THINGS[number % 10]} in {PLACES[number % 12]}"
        code = str(10_000 + 7 * number)
        fact, say = f"the {thing} opens with {code}.", self._said if self.what is SAID else self._promoted
        begun = await say(number, user, fact, at)
        for place, later in enumerate(asking_times(number, self.what)):
            await _until(begun + later)
            if await self._asked(user, QUESTIONS[(number + place) % len(QUESTIONS)].format(thing=thing), code):
                self.found.append(time.time() - begun)
                return
        self.missing += 1

    async def _promoted(self, number: int, user: str, fact: str, at: float) -> float:
        """Say it; when the clock starts (epoch seconds)."""
        await self._say(user, 0, "user", f"Please remember that {fact}", at)
        await self._say(user, 1, "assistant", "I will remember that.", at)
        closed = at + PAUSE_SECONDS
        await _until(closed)
        await self._say(user, 2, "user", "Thank you. What else is there to do today?", closed)
        return closed

    async def _said(self, number: int, user: str, fact: str, at: float) -> float:
        """The same."""
        await self._say(user, 0, "user", f"By the way, {fact}", at)
        if number % 2:
            (await self._http.post(f"/v1/sessions/{user}/end", json={"user_id": user})).raise_for_status()
        return at

    async def _asked(self, user: str, question: str, code: str) -> bool:
        """Whether it is found. To who looks for what is promoted, an exchange of a window counts for nothing."""
        asked = time.monotonic()
        try:
            answer = await self._http.post("/v1/search", json={"user_id": user, "query": question, "top_k": 5})
            found = answer.raise_for_status().json()["results"]
        except httpx.HTTPError:
            self.unanswered += 1
            return False
        self.question_seconds.append(time.monotonic() - asked)
        found = [hit for hit in found if self.what is SAID or hit["state"] != "short_term"]
        return any(code in hit["memory"] for hit in found)

    async def _say(self, user: str, place: int, role: str, content: str, at: float) -> None:
        record: dict[str, Any] = {
            "user_id": user,
            "session_id": user,
            "message_id": f"{user}-{place}",
            "role": role,
            "content": content,
            "timestamp": iso(int(at * 1e3) + place),
        }
        await self._loop.one(Record(partition_of(user, self._partitions), key_of(user), orjson.dumps(record)), at)

    def milliseconds(self) -> dict[str, float]:
        """Quantiles of the times, and of the questions' own."""
        told: dict[str, float] = {}
        for name, seconds in (("black_box", self.found), ("question", self.question_seconds)):
            values = np.percentile(seconds or [0.0], [50, 99, 100]) * 1e3
            told |= {f"{name}_{q}_ms": round(float(v), 1) for q, v in zip(("p50", "p99", "max"), values, strict=True)}
        return told


def asking_times(number: int, what: What = PROMOTED) -> Iterator[float]:
    """Seconds after the message that starts the clock at which the n-th sample is asked about."""
    later = what.first_question_seconds * what.later_by ** (number % PHASES / PHASES)
    while later < GIVE_UP_SECONDS:
        yield later
        later *= what.later_by


async def _until(at: float) -> None:
    """A moment in epoch seconds; at once where it has passed."""
    await asyncio.sleep(max(0.0, at - time.time()))
