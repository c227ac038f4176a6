"""Finds preferences that the user states, and preferences that repeated requests of the user show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

from schemas.summaries import Preference
from streams.summaries.rules.cues import captured
from streams.summaries.rules.kinds import Kind
from streams.summaries.rules.sentences import content, trimmed
from streams.summaries.rules.talk import Found, Talk

OFTEN: Final = 3
"""If the user makes the same choice in at least this many messages, it is a habit."""

OBSERVED_WORTH: Final = 2.0
"""The worth of a repeated choice, to which each of its messages adds one. Stated preferences have less than 2."""


def preferences(talk: Talk) -> Iterator[Found[Preference]]:
    """Yield what repeated choices show, and what the user states, unless a statement is one of these choices."""
    habits = list(observed(talk))
    yield from habits
    for one in stated(talk):
        words = content(one.item.text)
        if not any(
            words & content(habit.item.text) and set(one.item.sources) <= set(habit.item.sources) for habit in habits
        ):
            yield one


def stated(talk: Talk) -> Iterator[Found[Preference]]:
    """Yield what the user likes, dislikes and prefers, instructions for all later answers, and habits.

    A habit ("every Friday I …") is an observed preference: the user says what he does, not what he likes.
    """
    for line in talk.of(Kind.PREFERENCE):
        habit = line.sentence.cues.habits.search(line.text) is not None
        yield Found(Preference(text=line.text, observed=habit, sources=(line.message_id,)), line.worth, line.at)


class _Choice(NamedTuple):
    text: str
    message_id: str
    place: int


def observed(talk: Talk) -> Iterator[Found[Preference]]:
    """Yield the things that the user has chosen or asked for in at least `OFTEN` messages.

    The text of such a preference is the shortest of the texts with which the user chose the thing.
    """
    choices: dict[str, list[_Choice]] = defaultdict(list)
    for place, sentence in enumerate(talk.sentences):
        if sentence.by_user and not sentence.code:
            for clause in range(len(sentence.clauses)):
                text, cues = sentence.opened[clause], sentence.cues
                chosen = [(f"style {style.lastindex}", text) for style in cues.styles.finditer(text)]
                tools = [(captured(tool).casefold(), tool[0]) for tool in cues.tools.finditer(text)]
                chosen += tools
                named = content(" ".join(tool for tool, _ in tools))
                for wish in cues.wishes.finditer(text):
                    chosen += [(f"wish {word}", captured(wish)) for word in sorted(content(captured(wish)) - named)]
                for kind, words in chosen:
                    choices[kind].append(_Choice(trimmed(words), sentence.message.message_id, place))
    yield from _habits(choices)


def _habits(choices: dict[str, list[_Choice]]) -> Iterator[Found[Preference]]:
    seen: set[tuple[str, ...]] = set()
    for chosen in choices.values():
        sources = tuple(dict.fromkeys(choice.message_id for choice in chosen))
        if len(sources) >= OFTEN and sources not in seen:
            seen.add(sources)
            shortest = min(chosen, key=lambda choice: (len(choice.text), choice.place))
            yield Found(
                Preference(text=shortest.text, observed=True, sources=sources),
                OBSERVED_WORTH + len(sources),
                (shortest.place, 0),
            )
