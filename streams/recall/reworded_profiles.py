"""Profiles in the words of a chat model, which are checked against the user's own sentences.

Rewordings are kept in memory, so that the same profile is not asked for twice. They are found by the lines that they
reword, so a profile with other lines has none. They are dropped when something of the user is forgotten, when
partitions are assigned, and after an hour.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Protocol

from streams.language.personal_fact import Part
from streams.models.reworder import Rewording
from streams.recall.dates import ReferenceDate
from streams.recall.profile import MOST_TOKENS, Line, Profile, with_rewordings
from streams.recall.rewording import NotTheSame, reworded_lines
from streams.runtime.ending import ended
from streams.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

#: The maximum number of seconds that a profile waits for the model. A later answer is for the next profile.
WAIT_SECONDS: Final = 5.0
#: Seconds for which no question is asked after the model's service gave no answer.
PAUSE_SECONDS: Final = 30.0
#: Seconds for which rewordings are kept.
KEPT_SECONDS: Final = 3_600.0
#: The maximum number of users whose rewordings are kept: some 2 MB.
MOST_USERS: Final = 1_000
#: The maximum number of questions that wait for a place. More profiles keep the user's words.
MOST_ASKED: Final = 100

#: The rewordings of the sections that passed the check.
Rewordings = Mapping[Part, Sequence[Rewording]]
_Numbered = Mapping[Part, Mapping[int, Line]]


class Reworder(Protocol):
    """A model that rewords numbered lines of sections."""

    async def reworded(self, lines: Mapping[str, Mapping[int, str]]) -> Mapping[str, Sequence[Rewording]] | None:
        """Return the rewordings of each section, which need not be right; None if there is no answer.

        Never raises.
        """


@dataclass(frozen=True, slots=True)
class _Kept:
    """Rewordings of the lines with this key, and the timer that drops them. The timer refers to no text."""

    key: bytes
    rewordings: Rewordings
    timer: asyncio.TimerHandle


@dataclass(frozen=True, slots=True)
class _Asked:
    key: bytes
    task: asyncio.Task[Rewordings | None]


class RewordedProfiles:
    """Rewords profiles. Of each user, the rewordings of one profile are kept, which is the last one asked for.

    `at_once` is the maximum number of questions to the model at the same time.
    """

    def __init__(
        self, reworder: Reworder, at_once: int, metrics: Metrics, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._reworder, self._metrics, self._monotonic = reworder, metrics, monotonic
        self._places = asyncio.Semaphore(at_once)
        self._kept: dict[str, _Kept] = {}
        self._asked: dict[str, _Asked] = {}
        self._resume_at, self._forgettings = monotonic(), 0

    def moment(self) -> int:
        """Return a mark to take before memories are read for a profile.

        With it, `reworded` keeps nothing of memories that were forgotten since they were read.
        """
        return self._forgettings

    async def reworded(self, user_id: str, profile: Profile, reference: ReferenceDate, moment: int) -> Profile:
        """Return the user's profile in the model's words. Ask the model if need be, and wait `WAIT_SECONDS`.

        Sections whose rewording fails the check keep the user's words, and so do all if the model does not answer in
        time. Never raises for a failure of the model.
        """
        lines = _numbered(profile)
        key = _key(lines)
        kept = self._kept.get(user_id)
        if not lines:
            return profile
        if kept is None or kept.key != key:
            task = self._question(user_id, key, lines, moment)
            if task is None:
                return profile
            await asyncio.wait([task], timeout=WAIT_SECONDS)
        return self.ready(user_id, profile, reference)

    def ready(
        self, user_id: str, profile: Profile, reference: ReferenceDate, most_tokens: int = MOST_TOKENS
    ) -> Profile:
        """Return the profile in the model's words if these are kept, else the profile itself. Nothing is asked."""
        lines = _numbered(profile)
        kept = self._kept.get(user_id)
        if kept is None or kept.key != _key(lines):
            return profile
        return with_rewordings(profile, _checked(lines, kept.rewordings)[0], reference, most_tokens)

    def forget(self, user_id: str) -> None:
        """Drop what is kept of a user, and the question under way, because a memory of the user was forgotten."""
        self._forgettings += 1
        self._drop(user_id)
        if (asked := self._asked.pop(user_id, None)) is not None:
            asked.task.cancel()

    def clear(self) -> None:
        """Drop everything, because partitions were assigned: what is forgotten of others' users is not told here."""
        for user_id in {*self._kept, *self._asked}:
            self.forget(user_id)
        self._forgettings += 1

    async def stop(self) -> None:
        tasks = [one.task for one in self._asked.values()]
        self.clear()
        await ended(tasks)

    def _question(
        self, user_id: str, key: bytes, lines: _Numbered, moment: int
    ) -> asyncio.Task[Rewordings | None] | None:
        """Return the task that asks about these lines. It is None if no question may be asked now."""
        under_way = self._asked.get(user_id)
        if under_way is not None and under_way.key == key:
            return under_way.task
        if moment != self._forgettings or self._monotonic() < self._resume_at or len(self._asked) >= MOST_ASKED:
            return None
        if under_way is not None:
            under_way.task.cancel()
        task = asyncio.create_task(self._ask(lines))
        self._asked[user_id] = asked = _Asked(key, task)
        task.add_done_callback(lambda _: self._answered(user_id, asked))
        return task

    async def _ask(self, lines: _Numbered) -> Rewordings | None:
        """Ask the model, and return what passes the check; None if the model gave no answer."""
        async with self._places:
            if self._monotonic() < self._resume_at:  # a pause may have begun while this question waited
                return None
            shown = {part.value: {number: line.text for number, line in of.items()} for part, of in lines.items()}
            answer = await self._reworder.reworded(shown)
        if answer is None:
            self._resume_at = self._monotonic() + PAUSE_SECONDS
            self._count("failed", len(lines))
            return None
        given = {part: answer[part.value] for part in lines if part.value in answer}
        passed, faults = _checked(lines, given)
        self._count("reworded", len(passed))
        self._count("refused", len(faults))
        for part, fault in faults.items():
            log.warning("the section %s of a profile keeps the user's words: %s", part.value, fault)
        return {part: given[part] for part in passed}

    def _answered(self, user_id: str, asked: _Asked) -> None:
        """Keep the answer, unless the question was dropped."""
        if self._asked.get(user_id) is not asked:
            return
        del self._asked[user_id]
        if asked.task.cancelled():
            return
        if (exc := asked.task.exception()) is not None:
            log.error("a profile keeps the user's words: %s", type(exc).__name__)
            return
        if (found := asked.task.result()) is None:
            return
        self._drop(user_id)
        while len(self._kept) >= MOST_USERS:
            self._drop(next(iter(self._kept)))
        timer = asyncio.get_running_loop().call_later(KEPT_SECONDS, self._drop, user_id)
        self._kept[user_id] = _Kept(asked.key, found, timer)

    def _drop(self, user_id: str) -> None:
        if (kept := self._kept.pop(user_id, None)) is not None:
            kept.timer.cancel()

    def _count(self, outcome: str, sections: int) -> None:
        self._metrics.profile_sections.labels(outcome).inc(sections)


def _numbered(profile: Profile) -> dict[Part, dict[int, Line]]:
    """Return the lines of each section with their numbers, from 1 through the whole profile."""
    lines: dict[Part, dict[int, Line]] = {}
    number = 0
    for section in profile.sections:
        lines[section.part] = {number + place: line for place, line in enumerate(section.lines, start=1)}
        number += len(section.lines)
    return lines


def _key(lines: _Numbered) -> bytes:
    """Return a hash of the texts of the lines, and of the ids of their memories."""
    told = [(part.value, [(line.text, line.memory_ids) for line in of.values()]) for part, of in lines.items()]
    return blake2b(repr(told).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _checked(lines: _Numbered, rewordings: Rewordings) -> tuple[dict[Part, tuple[Line, ...]], dict[Part, str]]:
    """Return the reworded lines of the sections that pass the check, and the faults of the others."""
    passed: dict[Part, tuple[Line, ...]] = {}
    faults: dict[Part, str] = {}
    for part, of_part in lines.items():
        try:
            passed[part] = reworded_lines(part, of_part, rewordings.get(part))
        except NotTheSame as exc:
            faults[part] = str(exc)
    return passed, faults
