"""Finds technical problems, and the solutions that were proposed or found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from schemas.summaries import Problem
from streams.summaries.rules.sentences import CHINESE, ITEM_CHARS, Sentence, content, shortened, trimmed
from streams.summaries.rules.talk import Found, Talk, alike, message_before

TURNS: Final = 4
"""A proposal counts as a solution to a problem up to this many turns after the problem was last mentioned."""

PROBLEM_WORTH: Final = 5.0
"""The worth of a problem. Each message about the problem adds one."""

ASKED, PROPOSED, CONFIRMED = 1, 2, 3
"""Levels of certainty of a solution.

ASKED: the assistant asks whether it was tried. PROPOSED: the assistant proposes it. CONFIRMED: it helped the user.
"""


@dataclass(slots=True)
class _Problem:
    """A problem whose solution may still change."""

    text: str
    place: int
    last: Sentence
    sources: list[str]
    sure: int = 0
    steps: list[tuple[str, str]] = field(default_factory=list)
    """The steps of the solution: (text, id of its message)."""


def problems(talk: Talk) -> Iterator[Found[Problem]]:
    """Yield the problems that the user reports, each with its proposed or found solution."""
    open_ones: list[_Problem] = []
    for place, sentence in enumerate(talk.sentences):
        cues, text = sentence.cues, sentence.text
        if not sentence.by_user:
            if open_ones and not sentence.code and (cues.solves.search(text) or _orders(sentence)):
                _propose(open_ones, talk, place)
        elif open_ones and (failed := cues.unsolved.search(text)):
            _reject(open_ones, talk, place)
            _helped_after_all(open_ones, talk, place, failed.end())
        elif cues.solved.search(text):
            _confirm(open_ones, talk, place)
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
    """Record that a whole sentence is part of an item. Return its statements, or else its question.

    If a sentence of the user ends with a clause such as "and it works now", this clause is not returned.
    """
    sentence = talk.sentences[place]
    talk.take(place, 0, len(sentence.clauses))
    last = sentence.told or len(sentence.clauses)
    while last > 1 and sentence.by_user and not content(sentence.cues.solved.sub(" ", sentence.opened[last - 1])):
        last -= 1
    return shortened(sentence.span(0, last), ITEM_CHARS)


def _note(open_ones: list[_Problem], talk: Talk, place: int) -> None:
    """Add a new problem, or record another mention of a known problem.

    Successive sentences of a message about a failure are one problem.
    """
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
    """Return the problem that a sentence is about, or None if no problem was mentioned in the last turns.

    This is the problem that has the most words in common with the sentence. If several problems have equally many, it
    is the latest of them.
    """
    near = [
        problem
        for problem in reversed(open_ones)
        if problem.last.turn.session_id == sentence.turn.session_id
        and sentence.turn.number - problem.last.turn.number <= TURNS
    ]
    words = content(sentence.text)
    return max(near, key=lambda problem: len(words & content(problem.text)), default=None)


def _reject(open_ones: list[_Problem], talk: Talk, place: int) -> None:
    """Drop the proposed steps for a problem, because the user says that they did not help."""
    if problem := _meant(open_ones, talk.sentences[place]):
        talk.take(place, 0, len(talk.sentences[place].clauses))
        problem.last, problem.sure, problem.steps = talk.sentences[place], 0, []


def _orders(sentence: Sentence) -> bool:
    """True if one of the sentence's clauses is an instruction, such as "then start the broker"."""
    return any(sentence.cues.steps.match(clause) for clause in sentence.opened[: sentence.told])


def _propose(open_ones: list[_Problem], talk: Talk, place: int) -> None:
    """Record a proposal of the assistant as the solution of a problem.

    A proposal replaces the present steps of the solution if it is more certain. A further proposal in the same
    message is added to the present steps.
    """
    sentence = talk.sentences[place]
    problem = _meant(open_ones, sentence)
    if not problem or not any(sentence.opened) or sentence.text.endswith((":", "：")):
        return
    sure = ASKED if sentence.asked else PROPOSED
    if sure > problem.sure:
        problem.sure, problem.steps = sure, []
        _add(problem, talk, place)
    elif sure == problem.sure == PROPOSED and sentence.message.message_id == problem.steps[-1][1]:
        room = ITEM_CHARS - sum(len(text) for text, _ in problem.steps)
        if len(sentence.text) <= room:
            _add(problem, talk, place)


def _confirm(open_ones: list[_Problem], talk: Talk, place: int) -> None:
    """Record the step that solved a problem.

    This is a step that the user names or has described just before, else the step that the assistant proposed. If the
    user refers to a proposed step in few words, the text of the proposal is used. But if the proposal leaves a choice
    ("try A or B"), the user's text is used.
    """
    sentence = talk.sentences[place]
    problem = _meant(open_ones, sentence)
    if not problem or sentence.asked or not any(sentence.opened):
        return
    named = sentence.cues.solved.sub(" ", sentence.text)
    words = content(named)
    same = [step for step in problem.steps if words and len(words & content(step[0])) * 2 >= len(words)]
    tells = len(words) > 1 and (sentence.cues.solves.search(named) or sentence.cues.did.search(named))
    if same and not (tells and sentence.cues.either.search(same[0][0])):
        problem.steps = same[:1]
    elif (before := place if tells else _step_before(talk, place)) is not None:
        problem.steps = []
        _add(problem, talk, before)
    elif not problem.steps and (answer := _answer_before(talk, place)) is not None:
        _add(problem, talk, answer)
    if problem.steps:
        problem.sure = CONFIRMED
        talk.take(place, 0, len(sentence.clauses))


def _helped_after_all(open_ones: list[_Problem], talk: Talk, place: int, since: int) -> None:
    """Record the second step in "restarting didn't help, but clearing the cache did" as the solution."""
    sentence, start = talk.sentences[place], 0
    problem = _meant(open_ones, sentence)
    for clause, text in enumerate(sentence.clauses):
        if problem and start >= since and sentence.cues.helped.search(sentence.opened[clause]):
            step = sentence.span(clause, len(sentence.clauses))
            if (last := sentence.cues.helped.search(step)) and last.end() == len(step) and last.start():
                step = trimmed(step[: last.start()])
            problem.sure, problem.steps = CONFIRMED, [(shortened(step, ITEM_CHARS), sentence.message.message_id)]
            return
        start += len(text)


def _step_before(talk: Talk, place: int) -> int | None:
    """Return the index of the previous sentence, if it is in the same message and describes an action of the user.

    Otherwise return None.
    """
    before, sentence = talk.sentences[place - 1] if place else None, talk.sentences[place]
    if not before or before.message is not sentence.message or before.asked or before.code or _fails(before):
        return None
    return place - 1 if before.cues.did.search(before.text) and len(content(before.text)) > 1 else None


def _answer_before(talk: Talk, place: int) -> int | None:
    """Return the index of the first sentence with content in the previous message, if the assistant wrote it.

    Otherwise return None.
    """
    first, last = message_before(talk, place)
    told = [at for at in range(first, last) if not talk.sentences[at].by_user and not talk.sentences[at].code]
    told = [at for at in told if talk.sentences[at].told and len(content(talk.sentences[at].text)) > 1]
    return next((at for at in told if not talk.idle(at, 0)), None)


def _add(problem: _Problem, talk: Talk, place: int) -> None:
    problem.steps.append((_whole(talk, place), talk.sentences[place].message.message_id))
