"""The open tasks of a day."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from schemas.summaries import Todo
from streams.summaries.rules.cues import captured
from streams.summaries.rules.kinds import Kind
from streams.summaries.rules.lines import Line
from streams.summaries.rules.sentences import tells, trimmed
from streams.summaries.rules.talk import Found, Talk

_MARKED: Final = re.compile(r"[的啊呀哦吧呢吗]?[?？。！!，,\s]*$")


def todos(talk: Talk) -> Iterator[Found[Todo]]:
    """Yield the tasks that somebody has still to do, beginning with their verbs where the language shows them.

    A task is `inferred` if no words such as "I have to" or "remind me to" call it one.
    """
    for line in talk.accepted(Kind.TASK):
        what, when, named = _task(line)
        if tells(what):
            todo = Todo(text=what, when=when, inferred=not named, sources=talk.sources(line))
            yield Found(todo, line.worth, line.at)


def _task(line: Line) -> tuple[str, str, bool]:
    """Return the task from its verb on, the time that is named before it, and whether words call it a task."""
    cues, text = line.sentence.cues, line.text
    must = cues.must.search(line.sentence.span(0, line.last))
    what = text
    for found in (must, cues.will.search(text), cues.offers.search(text)):
        if found and captured(found).strip() and text.endswith(captured(found)):
            what = captured(found).lstrip()
            break
    when = ""
    if leading := cues.when.match(what):
        rest = what[leading.end() :].lstrip(" ，,").removeprefix("要")
        if tells(rest):
            what, when = rest, trimmed(leading[0])
    elif said := cues.when.search(text.removesuffix(what)):
        when = trimmed(said[0])
    return trimmed(_MARKED.sub("", what)), when, must is not None
