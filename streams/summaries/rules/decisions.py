"""Finds the decisions in a day's conversation, and the reasons for them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from schemas.summaries import Decision
from streams.summaries.rules.cues import captured
from streams.summaries.rules.sentences import ITEM_CHARS, content, parted, shortened, trimmed
from streams.summaries.rules.talk import Found, Spot, Talk, message_before

_MARK: Final = re.compile(r"[，。；;！!？?]|[.,](?=\s|$)|吧")

_TOOL: Final = re.compile(r"[A-Z][\w.+#-]*|[a-z]+-?\d[\w.-]*")

DECISION_WORTH: Final = 3.0
"""Added to the worth of a decision's sentence, because the estimate only measures facts about the user's life."""


REASON_TURNS: Final = 3
"""The rules search this many turns before a decision for its reason, in sentences that name the choice."""


class _Choice(NamedTuple):
    """A decision to which a reason may still be added.

    `chosen` is the text of the chosen thing, and `spot` is the clause that states the decision.
    """

    found: Found[Decision]
    chosen: str
    spot: Spot

    @property
    def names(self) -> frozenset[str]:
        """The index terms that a sentence about the same choice must have.

        These are the terms of the names of tools in `chosen`. If it names no tool, these are all terms of `chosen`.
        """
        return content(" ".join(_TOOL.findall(self.chosen))) or content(self.chosen)


def decisions(talk: Talk) -> Iterator[Found[Decision]]:
    """Yield technical choices of both speakers, and all decisions of the user.

    The reason of a decision may be in an earlier turn that names the choice ("PostgreSQL, because …" – "We'll use
    PostgreSQL."), or in a later turn, after the other speaker has asked for the reason. A repeated technical choice
    is yielded once.
    """
    choices: list[_Choice] = []
    for spot in talk.spots():
        adopted = _adopted(spot)
        if adopted is not None or (spot.sentence.by_user and _decides(talk, spot)):
            choices.append(_choice(talk, spot, adopted))
        elif spot.sentence.by_user and (agreed := _agreed(talk, spot)):
            choices.append(agreed)
    once: list[_Choice] = []
    for choice in (_reasoned(talk, choice) for choice in choices):
        same = next((place for place, known in enumerate(once) if _same(known, choice)), None)
        if same is None:
            once.append(choice)
        else:
            once[same] = once[same]._replace(found=_joined(once[same].found, choice.found))
    yield from (choice.found for choice in once)


def _adopted(spot: Spot) -> str | None:
    """Return the technical thing that the speaker chooses in this clause, or None if there is no such choice."""
    cues = spot.sentence.cues
    adopted = cues.adopts.search(spot.text)
    if adopted is None or not spot.real(adopted.start()):
        return None
    if not spot.sentence.by_user and cues.proposes.search(spot.text):
        return None
    return captured(adopted) if cues.technical.match(captured(adopted)) else None


def _decides(talk: Talk, spot: Spot) -> bool:
    decided = spot.sentence.cues.decides.search(spot.text)
    if decided is None or not spot.real(decided.start()):
        return False
    rest = spot.sentence.clauses[spot.clause + 1 : talk.reach(spot)]
    return bool(content("".join([spot.text[decided.end() :], *rest])))


def _choice(talk: Talk, spot: Spot, adopted: str | None) -> _Choice:
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
        technical=adopted is not None,
        sources=(message_id,),
    )
    found = Found(decision, DECISION_WORTH + talk.worth(spot.place), spot.place)
    return _Choice(found, parted(adopted or text, sentence.cues)[0], spot)


def _reason_before(spot: Spot) -> tuple[str, int]:
    """Return the reason that the sentence gives before the decision, and the index of the reason's first clause.

    If the sentence gives no reason there, return "" and the index of the decision's clause.
    """
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


def _agreed(talk: Talk, spot: Spot) -> _Choice | None:
    """Return the proposal in the assistant's previous message as a choice, if the user accepts it in this clause.

    The user's clause does not name the chosen thing. Return None if the user accepts no technical proposal.
    """
    settled = spot.sentence.cues.settles.search(spot.text)
    if not settled or not spot.real(settled.start()):
        return None
    first, last = message_before(talk, spot.place)
    if first == last or talk.sentences[first].by_user:
        return None
    for place in range(first, last):
        sentence = talk.sentences[place]
        proposed = sentence.cues.suggests.search(sentence.text)
        if proposed and sentence.cues.technical.match(captured(proposed)):
            text, reason = parted(captured(proposed), sentence.cues)
            text = shortened(trimmed(_MARK.split(text)[0]), ITEM_CHARS)
            talk.take(place, 0, len(sentence.clauses))
            talk.take(spot.place, spot.clause, spot.clause + 1)
            sources = (sentence.message.message_id, spot.sentence.message.message_id)
            decision = Decision(text=text, reason=shortened(reason, ITEM_CHARS), technical=True, sources=sources)
            return _Choice(Found(decision, DECISION_WORTH + talk.worth(place), spot.place), text, spot)
    return None


def _reasoned(talk: Talk, choice: _Choice) -> _Choice:
    """Return the choice. If it has no reason, add the reason that another message gives, if there is one."""
    if choice.found.item.reason:
        return choice
    reason, source = _reason_after(talk, choice) or _reason_of_before(talk, choice) or ("", "")
    if not reason:
        return choice
    sources = tuple(dict.fromkeys((*choice.found.item.sources, source)))
    item = choice.found.item.model_copy(update={"reason": shortened(reason, ITEM_CHARS), "sources": sources})
    return choice._replace(found=choice.found._replace(item=item))


def _reason_after(talk: Talk, choice: _Choice) -> tuple[str, str] | None:
    """Return the reason at the beginning of the speaker's next message, and the id of that message.

    The message answers the other speaker, who has asked for the reason. Return None if it does not begin with a
    reason.
    """
    own = choice.spot.sentence
    for place in range(choice.spot.place + 1, len(talk.sentences)):
        sentence = talk.sentences[place]
        if sentence.turn.session_id != own.turn.session_id or sentence.turn.number > own.turn.number + 1:
            return None
        if sentence.message.role is own.message.role and sentence.message is not own.message:
            why = sentence.cues.because.match(sentence.opened[0])
            if why is None or sentence.told < len(sentence.clauses):
                return None
            talk.take(place, 0, len(sentence.clauses))
            return trimmed(captured(why) + "".join(sentence.clauses[1:])), sentence.message.message_id
    return None


def _reason_of_before(talk: Talk, choice: _Choice) -> tuple[str, str] | None:
    """Return the reason in an earlier sentence that names the choice, and the id of that sentence's message.

    Return None if there is no such sentence with a reason.
    """
    own = choice.spot.sentence
    for place in range(choice.spot.place - 1, -1, -1):
        sentence = talk.sentences[place]
        if own.turn.number - sentence.turn.number > REASON_TURNS:
            return None
        if sentence.turn.session_id != own.turn.session_id or sentence.code or sentence.told < len(sentence.clauses):
            continue
        named, reason = parted(sentence.text, sentence.cues)
        if reason and choice.names and choice.names <= content(named) and not sentence.cues.unreal.search(named):
            talk.take(place, 0, len(sentence.clauses))
            return reason, sentence.message.message_id
    return None


def _same(one: _Choice, other: _Choice) -> bool:
    if not (one.found.item.technical and other.found.item.technical):
        return False
    words, others = content(one.chosen), content(other.chosen)
    return bool(words and others) and (words <= others or others <= words)


def _joined(one: Found[Decision], other: Found[Decision]) -> Found[Decision]:
    sources = tuple(dict.fromkeys((*one.item.sources, *other.item.sources)))
    reason = one.item.reason or other.item.reason
    return one._replace(item=one.item.model_copy(update={"reason": reason, "sources": sources}))
