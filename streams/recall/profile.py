"""A user's profile: who this is, in few tokens, in the user's own sentences, and without a model.

It is a function of the user's memories and a moment, and is stored nowhere: what is forgotten is not in it. Rules in
`streams/language/personal.py` find the sentences. A memory in another language than English and Chinese is shown only
if it is pinned.
"""

from __future__ import annotations

import heapq
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import Any, Final, NamedTuple

from schemas.lifecycle import DAY_MS, score_of, state_of
from schemas.memories import Memory, State
from schemas.settings import LifecycleSettings
from schemas.times import day_of
from streams.language.personal_fact import Part
from streams.language.secrets_told import is_secret
from streams.models.token_count import estimated_tokens
from streams.recall.dates import ReferenceDate
from streams.recall.profile_reading import Reading, Readings, own_words, sentences_of
from streams.recall.prompt import one_line
from tables.memories.items import is_expired, is_item
from tables.memories.validity import ended_or_not_begun
from tables.time_expressions.windows import windows_of

#: The maximum number of tokens of a profile, estimated.
MOST_TOKENS: Final = 300
#: Of a user's memories, so many of the newest ones, of the pinned ones, and of the most important others are read.
NEWEST, MOST_PINNED, MOST_IMPORTANT = 1_000, 200, 250
#: The maximum number of likes that others are compared with, and of lines of a part.
MOST_LIKES, MOST_LINES = 100, 200
#: How long a to-do without a date is one.
TO_DO_MS: Final = 14 * DAY_MS
#: A pinned memory is shown whole if it has at most so many tokens. Of a longer one, one sentence is shown.
WHOLE_TOKENS: Final = 60
#: A memory with more characters has more tokens.
WHOLE_CHARS: Final = 1_000
#: Two preferences are about the same if they share more than this share of the words of the shorter one.
ALIKE: Final = 0.5
#: The first lines of each part, which have room before the others of any part, and the parts' headings.
_FIRST: Final = {Part.PINNED: 5, Part.ABOUT: 8, Part.PEOPLE: 5, Part.PREFERENCES: 5, Part.TASKS: 4}
HEADINGS: Final = {
    Part.PINNED: "Pinned",
    Part.ABOUT: "About the user",
    Part.PEOPLE: "People and pets",
    Part.PREFERENCES: "Likes and dislikes",
    Part.TASKS: "To come",
}
_SHOWN: Final = (State.ACTIVE, State.COLD)
#: The kinds of memories whose sentences are read. All others are shown only if they are pinned.
_READ: Final = ("exchange", "remember", "summary_item")


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence, the memories that have it, and when it was said last (epoch ms). A task has the end of its time."""

    text: str
    memory_ids: tuple[uuid.UUID, ...]
    said_at: int
    due: int | None = None


class Section(NamedTuple):
    """The lines of a part. If a model has reworded them, they are not the user's own words."""

    part: Part
    lines: tuple[Line, ...]
    reworded: bool = False


@dataclass(frozen=True, slots=True)
class Profile:
    """The sections that have lines, the whole as one text, its estimated tokens, and the lines without room.

    `whole` are the memories of which a line has all words. A reworded line has all words of none.
    """

    sections: tuple[Section, ...] = ()
    text: str = ""
    tokens: int = 0
    left_out: int = 0
    whole: frozenset[uuid.UUID] = frozenset()


class _Said(NamedTuple):
    """A fact that holds, with the sentence that tells it and, of a task, the end of its time."""

    fact: Reading
    text: str
    memory: Memory
    due: int | None = None


def profile_of(
    memories: Iterable[Memory],
    reference: ReferenceDate,
    now: int,
    lifecycle: LifecycleSettings,
    most_tokens: int = MOST_TOKENS,
    readings: Readings | None = None,
) -> Profile:
    """Return the profile of current memories that are active or cold at `now` (epoch ms), without items.

    Tasks are those that are not past at the moment of `reference`, from whose day lines are dated. `readings` make
    the next profile of the same memories cheaper, and change no result.
    """
    readings = readings or Readings()
    moment = reference.moment
    read = [one for one in _bounded(memories) if not is_expired(one, now) and not ended_or_not_begun(one, moment)]
    told = [(one, memory) for memory in read if memory.kind in _READ for one in readings.of(memory)]
    newest, outdated = _newest(told, reference)
    holding = [one for one in newest if one.due is None or one.due > moment]
    outdated |= {one.memory.id for one in newest} - {one.memory.id for one in holding}
    outdated -= {one.memory.id for one in holding}
    # A newer statement replaces an older one even if its own memory is no longer shown.
    shown = {one.id: one for one in read if state_of(score_of(one, now, lifecycle), lifecycle) in _SHOWN}
    pinned = (one for one in shown.values() if one.pinned and one.id not in outdated)
    lines: dict[Part, list[Line]] = {Part.PINNED: _merged((_pinned(one, readings), one, None) for one in pinned)}
    holding.sort(key=lambda one: (one.fact.rank, one.due or 0))  # newest first, and of tasks the next first
    for part in _FIRST.keys() - lines.keys():
        found = (one for one in holding if one.fact.part is part and one.memory.id in shown)
        lines[part] = _merged((one.text, one.memory, one.due) for one in found)
    return _fitted(_each_once(lines), shown, reference, most_tokens)


def _bounded(memories: Iterable[Memory]) -> list[Memory]:
    """Return the memories to read, newest first. A user may have any number of them.

    Of the newest ones, those that are pinned beyond the newest `MOST_PINNED` are left out as well.
    """
    ordered = sorted((one for one in memories if one.current and not is_item(one)), key=attrgetter("said_at", "seq"))
    ordered.reverse()
    rest = [one for one in ordered[NEWEST:] if not one.pinned]
    important = {one.id for one in heapq.nlargest(MOST_IMPORTANT, rest, key=attrgetter("importance"))}
    newest = {one.id for one in islice(ordered, NEWEST) if not one.pinned}
    pinned = {one.id for one in islice((one for one in ordered if one.pinned), MOST_PINNED)}
    read = newest | pinned | important
    return [one for one in ordered if one.id in read]


def _pinned(memory: Memory, readings: Readings) -> str:
    """Return the line of a pinned memory: the user's words, or of many words the first sentence with a fact.

    It is empty if it may tell a secret.
    """
    words = "\n".join(own_words(memory))
    if len(words) > WHOLE_CHARS or estimated_tokens(one_line(words)) > WHOLE_TOKENS:
        place = next((one.place for one in readings.of(memory) if not one.ends), 0)
        words = next(islice(sentences_of(memory), place, None), "")
    return "" if is_secret(words) else words


def _newest(told: Iterable[tuple[Reading, Memory]], reference: ReferenceDate) -> tuple[list[_Said], set[uuid.UUID]]:
    """Return the newest fact of each key, newest first, and the ids of the memories with other facts of these keys.

    Facts that hold although they are older, as a person says, are among the former. A fact that needs a time and
    names none is no fact. Likes are compared with the first `MOST_LIKES`, and no more are returned.
    """
    said: dict[uuid.UUID, list[str]] = {}
    replaced: set[uuid.UUID] = set()
    newest: dict[Any, _Said] = {}
    liked: list[frozenset[int]] = []
    cancelled: list[tuple[frozenset[int], uuid.UUID, int]] = []
    for place, (one, memory) in enumerate(sorted(told, key=lambda one: (-one[1].said_at, -one[1].seq))):
        if one.ends:
            cancelled.append((one.words, memory.id, one.place))
            continue
        if one.part is Part.TASKS and _is_cancelled(one, memory, cancelled[:MOST_LIKES]):
            replaced.add(memory.id)
            continue
        key = (one.part, one.key)
        known = key in newest
        if one.part is Part.PREFERENCES and not known:
            known = any(len(one.words & other) > ALIKE * min(len(one.words), len(other)) for other in liked)
            if len(liked) < MOST_LIKES:
                liked.append(one.words)
            elif not known:
                continue
        if known and not memory.still_holds:
            replaced.add(memory.id)
            continue
        if memory.id not in said:
            said[memory.id] = list(sentences_of(memory))
        text, due = said[memory.id][one.place], None
        if one.part is Part.TASKS:
            windows = windows_of(text, memory.created_at, reference.zone)
            if not windows and one.dated:
                continue
            due = max((window.end for window in windows), default=memory.said_at + TO_DO_MS)
        newest[place if known else key] = _Said(one, text, memory, due)
    return list(newest.values()), replaced


def _is_cancelled(task: Reading, memory: Memory, cancelled: list[tuple[frozenset[int], uuid.UUID, int]]) -> bool:
    """Return whether the task is older than a sentence that cancels it."""
    earlier = (words for words, by, place in cancelled if by != memory.id or task.place < place)
    return any(words and words <= task.words for words in earlier)


def _merged(found: Iterable[tuple[str, Memory, int | None]]) -> list[Line]:
    """Return the first `MOST_LINES` lines, those of the same words as one, with the ids of all memories."""
    lines: dict[str, Line] = {}
    for text, memory, due in found:
        shown, key = one_line(text), text.casefold().rstrip(".!。！ ")
        before = lines.get(key)
        if before is None and len(lines) >= MOST_LINES:
            break
        if before is None:
            lines[key] = Line(shown, (memory.id,), memory.said_at, due)
        elif memory.id not in before.memory_ids:
            lines[key] = Line(before.text, (*before.memory_ids, memory.id), before.said_at, before.due)
    return [line for line in lines.values() if line.text]


def _each_once(lines: Mapping[Part, list[Line]]) -> dict[Part, list[Line]]:
    """Return the lines in the order of their parts, without those whose words an earlier part has."""
    shown: list[str] = []
    left: dict[Part, list[Line]] = {}
    for part in Part:
        left[part] = [line for line in lines.get(part, ()) if not any(line.text in one for one in shown)]
        shown += [line.text for line in left[part]]
    return left


def _fitted(
    lines: Mapping[Part, list[Line]], known: Mapping[uuid.UUID, Memory], reference: ReferenceDate, most_tokens: int
) -> Profile:
    """Fill the room: first the first lines of each part, then the others, by worth. A line is shown whole or not."""
    first = [(part, line) for part, several in lines.items() for line in several[: _FIRST[part]]]
    others = [(part, line) for part, several in lines.items() for line in several[_FIRST[part] :]]
    total = len(first) + len(others)
    room = most_tokens - estimated_tokens(_more(total)) - 1
    kept: dict[Part, list[Line]] = {}
    for part, line in (*first, *others):
        needed = estimated_tokens(f"{_shown(line, reference)}\n")
        needed += 0 if part in kept else estimated_tokens(f"{HEADINGS[part]}:\n")
        if needed <= room:
            room -= needed
            kept.setdefault(part, []).append(line)
    sections = tuple(Section(part, tuple(kept[part])) for part in Part if part in kept)
    left_out = total - sum(len(one.lines) for one in sections)
    text = _rendered(sections, left_out, reference)
    whole = {
        identity
        for section in sections
        for line in section.lines
        for identity in line.memory_ids
        if one_line(known[identity].text) == line.text
    }
    return Profile(sections, text, estimated_tokens(text), left_out, frozenset(whole))


def with_rewordings(
    profile: Profile,
    reworded: Mapping[Part, tuple[Line, ...]],
    reference: ReferenceDate,
    most_tokens: int = MOST_TOKENS,
) -> Profile:
    """Return the profile with these lines in place of those of their sections.

    If it is longer than `most_tokens`, sections keep the user's words, from the last reworded one on.
    """
    left = {
        one.part: reworded[one.part] for one in profile.sections if reworded.get(one.part, one.lines) != one.lines
    }
    while left:
        sections = tuple(
            Section(one.part, left[one.part], True) if one.part in left else one for one in profile.sections
        )
        text = _rendered(sections, profile.left_out, reference)
        if (tokens := estimated_tokens(text)) <= most_tokens:
            own = {one for part in sections if not part.reworded for line in part.lines for one in line.memory_ids}
            return Profile(sections, text, tokens, profile.left_out, profile.whole & own)
        left.popitem()
    return profile


def _rendered(sections: Sequence[Section], left_out: int, reference: ReferenceDate) -> str:
    lines = []
    for section in sections:
        lines += [f"{HEADINGS[section.part]}:", *(_shown(line, reference) for line in section.lines)]
    return "\n".join([*lines, *([_more(left_out)] if left_out else [])])


def _shown(line: Line, reference: ReferenceDate) -> str:
    if not reference.dates:
        return f"- {line.text}"
    due = "" if line.due is None else f", until {day_of(line.due - 1, reference.zone)}"
    return f"- [{day_of(line.said_at, reference.zone)}{due}] {line.text}"


def _more(left_out: int) -> str:
    return f"({left_out} more lines have no room.)"
