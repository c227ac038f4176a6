"""What was decided, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from schemas.summaries import Decision
from streams.rules.summary.cues import captured
from streams.rules.summary.sentences import ITEM_CHARS, content, parted, shortened, trimmed
from streams.rules.summary.talk import Found, Spot, Talk

DECISION_WORTH: Final = 3.0
"""What a decision is worth more than its sentence: estimated is what it tells of the user's life."""


def decisions(talk: Talk) -> Iterator[Found[Decision]]:
    """Technical choices of either side, and whatever the user decides."""
    for spot in talk.spots():
        technical = _adopts(spot)
        if technical or (spot.sentence.by_user and _decides(talk, spot)):
            yield _decision(talk, spot, technical)


def _adopts(spot: Spot) -> bool:
    cues = spot.sentence.cues
    adopted = cues.adopts.search(spot.text)
    if adopted is None or not spot.real(adopted.start()):
        return False
    if not spot.sentence.by_user and cues.proposes.search(spot.text):
        return False
    return cues.technical.match(captured(adopted)) is not None


def _decides(talk: Talk, spot: Spot) -> bool:
    decided = spot.sentence.cues.decides.search(spot.text)
    if decided is None or not spot.real(decided.start()):
        return False
    rest = spot.sentence.clauses[spot.clause + 1 : talk.reach(spot)]
    return bool(content("".join([spot.text[decided.end() :], *rest])))


def _decision(talk: Talk, spot: Spot, technical: bool) -> Found[Decision]:
    sentence, message_id = spot.sentence, spot.sentence.message.message_id
    last = talk.reach(spot)
    text, reason = parted(sentence.span(spot.clause, last), sentence.cues)
    first = spot.clause
    if not reason:
        reason, first = _reason_before(spot)
    if not reason and last == len(sentence.clauses) and spot.place + 1 < len(talk.sentences):
        following = talk.sentences[spot.place + 1]
        if following.message is sentence.message and (why := sentence.cues.because.match(following.opened[0])):
            reason = trimmed(captured(why) + "".join(following.clauses[1:]))
            talk.take(spot.place + 1, 0, len(following.clauses))
    talk.take(spot.place, first, last)
    decision = Decision(
        text=shortened(text, ITEM_CHARS),
        reason=shortened(reason, ITEM_CHARS),
        technical=technical,
        sources=(message_id,),
    )
    return Found(decision, DECISION_WORTH + talk.worth(spot.place), spot.place)


def _reason_before(spot: Spot) -> tuple[str, int]:
    """The reason that the sentence gives first, and the clause where it begins."""
    sentence, cues = spot.sentence, spot.sentence.cues
    clause = spot.clause
    if not clause:
        return "", clause
    for first in range(clause):
        if why := cues.because.match(sentence.opened[first]):
            return trimmed(captured(why) + "".join(sentence.clauses[first + 1 : clause])), first
    if cues.therefore.match(sentence.clauses[clause].lstrip()):
        return sentence.span(0, clause), 0
    return "", clause
