"""Finds tasks that the user names, and tasks that follow from the conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from schemas.summaries import Todo
from streams.summaries.rules.cues import captured
from streams.summaries.rules.sentences import ITEM_CHARS, content, parted, shortened, trimmed
from streams.summaries.rules.talk import Found, Spot, Talk, message_before

NAMED_WORTH: Final = 4.0
"""Added to the worth of a task that the user names."""

_REMIND: Final = re.compile("提醒|remind", re.IGNORECASE)

_MARKED: Final = re.compile(r"[的啊呀哦吧呢吗]?[?？。！!，,\s]*$")
_ALL: Final = re.compile("(.+)")


def named(talk: Talk) -> Iterator[Found[Todo]]:
    """Yield the tasks that the user names: "I need to …", "remind me to …".

    A question names no task, unless it asks for a reminder: "can you remind me to …?".
    """
    for place, sentence in enumerate(talk.sentences):
        if sentence.by_user and not sentence.code:
            for clause in range(len(sentence.clauses)):
                spot = Spot(place, clause, sentence, sentence.opened[clause])
                listed = clause and sentence.cues.tasks.fullmatch(trimmed(sentence.opened[clause - 1]))
                task = (_ALL if listed else sentence.cues.must).search(spot.text)
                if task and (clause < sentence.told or _REMIND.search(task[0])) and not talk.taken(place, clause):
                    yield from _todo(talk, spot, task, inferred=False)


def following(talk: Talk) -> Iterator[Found[Todo]]:
    """Yield as tasks: intentions of the user, proposals that the user accepts, and promises of the assistant."""
    for spot in talk.spots():
        if talk.taken(spot.place, spot.clause):
            continue
        cues = spot.sentence.cues
        if not spot.sentence.by_user:
            if promised := cues.promises.search(spot.text):
                yield from _todo(talk, spot, promised, inferred=True)
            continue
        own = list(_todo(talk, spot, task, inferred=True)) if (task := cues.will.search(spot.text)) else []
        accepted = None if own else cues.accepts.search(spot.text)
        if accepted and spot.real(accepted.start()) and (agreed := _agreed(talk, spot)):
            own.append(agreed)
        yield from own


def _todo(talk: Talk, spot: Spot, task: re.Match[str], *, inferred: bool) -> Iterator[Found[Todo]]:
    what, when = _what_and_when(spot, task)
    vague = len(content(what)) < (2 if inferred and not when else 1)
    if vague or not spot.real(task.start()) or spot.sentence.cues.aimless.match(what):
        return
    last = talk.reach(spot)
    talk.take(spot.place, spot.clause, last)
    todo = Todo(
        text=shortened(
            trimmed(_MARKED.sub("", what + "".join(spot.sentence.clauses[spot.clause + 1 : last]))), ITEM_CHARS
        ),
        when=when,
        inferred=inferred,
        sources=(spot.sentence.message.message_id,),
    )
    yield Found(todo, talk.worth(spot.place) + (0 if inferred else NAMED_WORTH), spot.place)


def _what_and_when(spot: Spot, task: re.Match[str]) -> tuple[str, str]:
    """Return the task, beginning with its verb, and the time that is named before the task, or ""."""
    cues, what = spot.sentence.cues, captured(task).lstrip()
    if leading := cues.when.match(what):
        return what[leading.end() :].lstrip(" ，,").removeprefix("要"), trimmed(leading[0])
    if when := cues.when.search(spot.text[: task.start(task.lastindex or 0)]):
        return what, trimmed(when[0])
    if spot.clause and (alone := cues.when.fullmatch(trimmed(spot.sentence.opened[spot.clause - 1]))):
        return what, alone[0]
    return what, ""


def _agreed(talk: Talk, spot: Spot) -> Found[Todo] | None:
    """Return the task that the user accepts in this clause, or None if there is none.

    The task is the first proposal in the previous message, if the assistant wrote that message.
    """
    first, last = message_before(talk, spot.place)
    if first == last or talk.sentences[first].by_user:
        return None
    for proposal in talk.spots(first, last):
        sentence = proposal.sentence
        what = sentence.cues.proposes.search(proposal.text)
        if not what or sentence.cues.aimless.match(captured(what)) or len(content(captured(what))) < 2:
            continue
        end = talk.reach(proposal)
        text, _ = parted(captured(what) + "".join(sentence.clauses[proposal.clause + 1 : end]), sentence.cues)
        talk.take(proposal.place, proposal.clause, end)
        talk.take(spot.place, spot.clause, spot.clause + 1)
        sources = (sentence.message.message_id, spot.sentence.message.message_id)
        todo = Todo(text=shortened(trimmed(text), ITEM_CHARS), inferred=True, sources=sources)
        return Found(todo, talk.worth(proposal.place), spot.place)
    return None
