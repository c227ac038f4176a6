"""Users who say something, and the time until a question finds it.

*Promoted* samples ask to remember something, and look for it in long-term memory only:

    user       Please remember that the red locker in Oslo opens with 90210.
    assistant  I will remember that.
    (a second later)
    user       Thank you. What else is there to do today?

The clock starts when the third message, which closes the exchange, is due. *Said* samples only mention something, and
look for it in the windows too:

    user       By the way, the red locker in Oslo opens with 90210.

The clock starts when that message is due. Every second sample ends its session, so that promotion has decided: an
exchange that it drops must be found as soon as one that it keeps.

Each sample has its own user and a fixed start. Its questions come at fixed times, each 1.7 times (for *said* samples
1.3 times) as late as the one before, and each in other words, so that no cache answers them; they end when the sample
is found. Eight samples in turn have different first times, so that together they cover all moments. A sample's time
ends when the answer is read: the time between the last question in vain and the successful one counts as age.
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

#: The pause before the message that closes the exchange.
PAUSE_SECONDS: Final = 1.0
PHASES: Final = 8
GIVE_UP_SECONDS: Final = 30.0


class What(NamedTuple):
    """What samples look for: the time of the first question, the factor of the next ones, messages in the log."""

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
    """`count` samples, spread evenly over a load."""

    def __init__(
        self, loop: OpenLoop, http: httpx.AsyncClient, partitions: int, count: int, what: What = PROMOTED
    ) -> None:
        self._loop, self._http, self._partitions, self.count, self.what = loop, http, partitions, count, what
        self.found: list[float] = []
        self.question_seconds: list[float] = []
        self.missing = self.unanswered = 0

    async def take(self, seconds: float) -> None:
        """Start the samples one after the other within `seconds`; return when each is found or given up."""
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
        """Send the messages; return when the clock starts (epoch seconds)."""
        await self._say(user, 0, "user", f"Please remember that {fact}", at)
        await self._say(user, 1, "assistant", "I will remember that.", at)
        closed = at + PAUSE_SECONDS
        await _until(closed)
        await self._say(user, 2, "user", "Thank you. What else is there to do today?", closed)
        return closed

    async def _said(self, number: int, user: str, fact: str, at: float) -> float:
        """As `_promoted`, with a single message."""
        await self._say(user, 0, "user", f"By the way, {fact}", at)
        if number % 2:
            (await self._http.post(f"/v1/sessions/{user}/end", json={"user_id": user})).raise_for_status()
        return at

    async def _asked(self, user: str, question: str, code: str) -> bool:
        """Whether the sample is found. For a promoted sample, an exchange of a window does not count."""
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
        """Quantiles of the samples' times, and of the questions alone."""
        told: dict[str, float] = {}
        for name, seconds in (("black_box", self.found), ("question", self.question_seconds)):
            values = np.percentile(seconds or [0.0], [50, 99, 100]) * 1e3
            told |= {f"{name}_{q}_ms": round(float(v), 1) for q, v in zip(("p50", "p99", "max"), values, strict=True)}
        return told


def asking_times(number: int, what: What = PROMOTED) -> Iterator[float]:
    """The times of the n-th sample's questions, in seconds after the clock starts."""
    later = what.first_question_seconds * what.later_by ** (number % PHASES / PHASES)
    while later < GIVE_UP_SECONDS:
        yield later
        later *= what.later_by


async def _until(at: float) -> None:
    """Sleep until a moment in epoch seconds; not at all if it has passed."""
    await asyncio.sleep(max(0.0, at - time.time()))
