"""Finds preferences that the user states, and preferences that repeated requests of the user show."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

from schemas.summaries import Preference
from streams.summaries.rules.cues import captured
from streams.summaries.rules.sentences import ITEM_CHARS, content, shortened, tells, trimmed
from streams.summaries.rules.talk import Found, Spot, Talk

OFTEN: Final = 3
"""If the user makes the same choice in at least this many messages, it is a habit."""

OBSERVED_WORTH: Final = 6.0
"""The worth of a habit, to which each of its messages adds one. Stated preferences have 0-10."""


def stated(talk: Talk) -> Iterator[Found[Preference]]:
    """Yield the likes, dislikes and preferences that the user states, and instructions for all later answers."""
    for spot in talk.spots():
        if spot.sentence.by_user and _says_so(spot):
            last = talk.reach(spot)
            text = shortened(spot.sentence.span(spot.clause, last), ITEM_CHARS)
            talk.take(spot.place, spot.clause, last)
            yield Found(
                Preference(text=text, sources=(spot.sentence.message.message_id,)), talk.worth(spot.place), spot.place
            )


def _says_so(spot: Spot) -> bool:
    cues = spot.sentence.cues
    rest = "".join(spot.sentence.clauses[spot.clause + 1 : spot.sentence.told])
    if (wanted := cues.standing.match(spot.text + rest)) and spot.real(0):
        return tells(captured(wanted))
    liked = cues.likes.search(spot.text)
    if not liked or cues.points.match(spot.text) or not spot.real(liked.start()):
        return False
    what = captured(liked)
    return tells(what) and not cues.vague.fullmatch(trimmed(what))


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
                    chosen += [(f"wish {word}", captured(wish)) for word in content(captured(wish)) - named]
                for kind, words in chosen:
                    choices[kind].append(_Choice(trimmed(words), sentence.message.message_id, place))
    yield from _habits(choices)


def _habits(choices: dict[str, list[_Choice]]) -> Iterator[Found[Preference]]:
    seen = Counter[tuple[str, ...]]()
    for chosen in choices.values():
        sources = tuple(dict.fromkeys(choice.message_id for choice in chosen))
        if len(sources) >= OFTEN and not seen[sources]:
            seen[sources] += 1
            shortest = min(chosen, key=lambda choice: (len(choice.text), choice.place))
            yield Found(
                Preference(text=shortest.text, observed=True, sources=sources),
                OBSERVED_WORTH + len(sources),
                shortest.place,
            )
