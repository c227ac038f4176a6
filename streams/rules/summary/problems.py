"""Technical problems, and what was proposed or found against them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from schemas.summaries import Problem
from streams.rules.summary.sentences import CHINESE, ITEM_CHARS, Sentence, content, shortened
from streams.rules.summary.talk import Found, Talk, alike

TURNS: Final = 4
"""So many turns after a problem was last mentioned what is proposed is proposed against it."""

PROBLEM_WORTH: Final = 5.0
"""What a problem is worth; each message about it adds one."""

ASKED, PROPOSED, CONFIRMED = 1, 2, 3
"""How sure a solution is: the assistant asks whether it was tried, or proposes it; the user says that it worked."""


@dataclass(slots=True)
class _Problem:
    """A problem while its solution is looked for."""

    text: str
    place: int
    last: Sentence
    sources: list[str]
    sure: int = 0
    steps: list[tuple[str, str]] = field(default_factory=list)
    """The texts of its solution, each with the id of its message."""


def problems(talk: Talk) -> Iterator[Found[Problem]]:
    """What the user says is broken, each with what was proposed or found against it."""
    open_ones: list[_Problem] = []
    for place, sentence in enumerate(talk.sentences):
        cues, text = sentence.cues, sentence.text
        if not sentence.by_user:
            if open_ones and not sentence.code and cues.solves.search(text):
                _try(open_ones, talk, place)
        elif open_ones and cues.unsolved.search(text):
            _reject(open_ones, talk, place)
        elif cues.solved.search(text):
            _try(open_ones, talk, place)
        elif _fails(sentence):
            _note(open_ones, talk, place)
    for problem in open_ones:
        joint = "；" if problem.last.cues is CHINESE else "; "
        found = Problem(
            text=problem.text,
            solution=joint.join(text for text, _ in problem.steps),
            sources=tuple(dict.fromkeys([*problem.sources, *(source for _, source in problem.steps)])),
        )
        yield Found(found, PROBLEM_WORTH + len(found.sources) + talk.worth(problem.place) / 10, problem.place)


def _fails(sentence: Sentence) -> bool:
    cues, text = sentence.cues, sentence.text
    found = cues.fails.search(text)
    if sentence.code:
        return found is not None
    if not found and (found := cues.may_fail.search(text)) and not cues.device.search(text):
        return False
    if not found or cues.works.search(text) or cues.unreal.search(text[: found.start()]):
        return False
    return not (cues.adopts.search(text) or cues.decides.search(text))


def _whole(talk: Talk, place: int) -> str:
    """What a sentence tells, or else asks; all of it is taken."""
    sentence = talk.sentences[place]
    talk.take(place, 0, len(sentence.clauses))
    return shortened(sentence.span(0, sentence.told or len(sentence.clauses)), ITEM_CHARS)


def _note(open_ones: list[_Problem], talk: Talk, place: int) -> None:
    """A problem is mentioned: a new one, or one that is known. What one message says at a stretch is one problem."""
    sentence, text = talk.sentences[place], _whole(talk, place)
    for problem in open_ones:
        stretch = problem.last.message is sentence.message and (
            sentence.code or talk.sentences[place - 1] is problem.last
        )
        if stretch or alike(problem.text, text):
            problem.last = sentence
            problem.sources.append(sentence.message.message_id)
            return
    if text:
        open_ones.append(_Problem(text, place, sentence, [sentence.message.message_id]))


def _meant(open_ones: list[_Problem], sentence: Sentence) -> _Problem | None:
    """The problem that a sentence is about: the one whose words it uses, else the latest; None where all are old."""
    near = [
        problem
        for problem in reversed(open_ones)
        if problem.last.turn.session_id == sentence.turn.session_id
        and sentence.turn.number - problem.last.turn.number <= TURNS
    ]
    words = content(sentence.text)
    return max(near, key=lambda problem: len(words & content(problem.text)), default=None)


def _reject(open_ones: list[_Problem], talk: Talk, place: int) -> None:
    """What was proposed did not help."""
    if problem := _meant(open_ones, talk.sentences[place]):
        talk.take(place, 0, len(talk.sentences[place].clauses))
        problem.last, problem.sure, problem.steps = talk.sentences[place], 0, []


def _try(open_ones: list[_Problem], talk: Talk, place: int) -> None:
    """Something is said to solve a problem."""
    sentence = talk.sentences[place]
    problem = _meant(open_ones, sentence)
    if not problem or not any(sentence.opened) or sentence.text.endswith((":", "：")):
        return
    if not sentence.by_user:
        _propose(problem, talk, place, ASKED if sentence.asked else PROPOSED)
    elif sentence.cues.solves.search(sentence.text) and not sentence.asked:
        problem.sure, problem.steps = CONFIRMED, []
        _add(problem, talk, place)
    elif problem.steps:
        problem.sure = CONFIRMED


def _propose(problem: _Problem, talk: Talk, place: int, sure: int) -> None:
    """A better proposal takes the place of the one before; what the same message goes on to say is added."""
    if sure > problem.sure:
        problem.sure, problem.steps = sure, []
        _add(problem, talk, place)
    elif sure == problem.sure == PROPOSED and talk.sentences[place].message.message_id == problem.steps[-1][1]:
        room = ITEM_CHARS - sum(len(text) for text, _ in problem.steps)
        if len(talk.sentences[place].text) <= room:
            _add(problem, talk, place)


def _add(problem: _Problem, talk: Talk, place: int) -> None:
    problem.steps.append((_whole(talk, place), talk.sentences[place].message.message_id))
