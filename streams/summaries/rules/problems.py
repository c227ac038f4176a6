"""The technical problems of a day, and their solutions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from schemas.summaries import Problem
from streams.summaries.rules.kinds import Kind
from streams.summaries.rules.lines import Line
from streams.summaries.rules.sentences import CHINESE, ITEM_CHARS, content, trimmed
from streams.summaries.rules.talk import Found, Talk, alike

TURNS: Final = 4
"""A solution may be up to this many turns after its problem was last mentioned."""


class _Problem:
    """A problem that may still be mentioned again, or solved."""

    def __init__(self, line: Line) -> None:
        self.line, self.last = line, line
        self.mentions = [line]
        self.steps: list[Line] = []

    def mention(self, line: Line) -> None:
        self.last = line
        self.mentions.append(line)

    def near(self, line: Line) -> bool:
        """True if a line is in the same session, at most `TURNS` turns later."""
        turn, last = line.sentence.turn, self.last.sentence.turn
        return turn.session_id == last.session_id and turn.number - last.number <= TURNS

    def solve(self, step: Line) -> None:
        """Add a step. Of steps in several messages, only those of the last message are kept: earlier ones failed."""
        if self.steps and self.steps[-1].sentence.message is not step.sentence.message:
            self.steps = []
        if sum(len(one.text) for one in self.steps) + len(step.text) <= ITEM_CHARS:
            self.steps.append(step)

    def found(self) -> Found[Problem]:
        joint = "；" if self.line.sentence.cues is CHINESE else "; "
        said = [*self.mentions, *self.steps]
        problem = Problem(
            text=self.line.text,
            solution=joint.join(trimmed(step.sentence.cues.worked.sub("", step.text)) for step in self.steps),
            sources=tuple(dict.fromkeys(line.message_id for line in said)),
        )
        return Found(problem, self.line.worth, self.line.at)


def problems(talk: Talk) -> Iterator[Found[Problem]]:
    """Yield the problems that the user reports, each with the solution that was found, or else proposed last."""
    known: list[_Problem] = []
    for line in talk.lines:
        if line.kind == Kind.PROBLEM:
            same = next((one for one in known if one.near(line) and _same(one, line)), None)
            if same:
                same.mention(line)
            else:
                known.append(_Problem(line))
        elif line.kind == Kind.SOLUTION:
            near = [one for one in reversed(known) if one.near(line)]
            words = content(line.sentence.text)
            if meant := max(near, key=lambda one: len(words & content(one.line.text)), default=None):
                meant.solve(line)
    yield from (one.found() for one in known)


def _same(problem: _Problem, line: Line) -> bool:
    """True for a further line of the same sentence, and for a repetition."""
    return problem.last.sentence is line.sentence or alike(problem.line.text, line.text)
