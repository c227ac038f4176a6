"""The decisions of a day, and the reasons for them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from schemas.summaries import Decision
from streams.summaries.rules.cues import captured
from streams.summaries.rules.kinds import DECISION, REASON
from streams.summaries.rules.lines import Line
from streams.summaries.rules.noun_phrases import read_clause
from streams.summaries.rules.sentences import CHINESE, ITEM_CHARS, Sentence, content, parted, shortened, trimmed
from streams.summaries.rules.tagging import tongue_of
from streams.summaries.rules.talk import Found, Talk

FEW_WORDS: Final = 2
"""A decision of so few words, such as "5 s then", is put after the thing that was asked about."""

_TOOL: Final = re.compile(r"[A-Z][\w.+#-]*[A-Z\d][\w.+#-]*|[a-z]+-?\d[\w.-]*")
"""Names of tools, which two sayings of a choice have in common."""

REASON_TURNS: Final = 1
"""A reason may be this many turns before or after its decision."""


def decisions(talk: Talk) -> Iterator[Found[Decision]]:
    """Yield what was decided, each with the reason that is nearest to it, if one is given.

    A decision that the assistant words is one that the user accepts, so the user's next message is a source, too. A
    repeated choice of a tool is yielded once.
    """
    reasons = talk.of(REASON)
    found: dict[frozenset[str], Found[Decision]] = {}
    for line in talk.of(DECISION):
        decision = _decision(talk, line, reasons)
        tools = frozenset(map(str.casefold, _TOOL.findall(decision.text))) if decision.technical else None
        key = tools or frozenset({f"{line.place} {line.first}"})
        one = Found(decision, line.worth, line.at)
        found[key] = _joined(found[key], one) if key in found else one
    yield from found.values()


def _decision(talk: Talk, line: Line, reasons: list[Line]) -> Decision:
    """Return the decision of a line. The reason that is found for it is removed from `reasons`."""
    text, reason = parted(line.text, line.sentence.cues)
    if not line.sentence.by_user and (offer := line.sentence.cues.offers.search(text)):
        text = captured(offer).strip() or text
    sources = [line.message_id, *accepted_in(talk, line)]
    if len(content(text)) <= FEW_WORDS and (asked := _asked_before(talk, line)):
        text = shortened(_about(asked, text), ITEM_CHARS)
        sources.append(asked.message.message_id)
    if not reason and (why := _reason_of(line, reasons)):
        reasons.remove(why)
        reason = why.text
        sources.append(why.message_id)
    if not reason and line.last < len(line.sentence.clauses):
        because = line.sentence.cues.because.match(line.sentence.clauses[line.last].lstrip())
        reason = captured(because) if because else ""
    return Decision(
        text=text,
        reason=shortened(trimmed(_bare(reason, line)), ITEM_CHARS),
        technical=line.sentence.cues.technical.search(text) is not None,
        sources=tuple(dict.fromkeys(sources)),
    )


def _joined(one: Found[Decision], again: Found[Decision]) -> Found[Decision]:
    """Return a decision with the reason and the sources of its repetition."""
    sources = tuple(dict.fromkeys(one.item.sources + again.item.sources))
    item = one.item.model_copy(update={"reason": one.item.reason or again.item.reason, "sources": sources})
    return one._replace(item=item, worth=max(one.worth, again.worth))


def _asked_before(talk: Talk, line: Line) -> Sentence | None:
    """Return the question before a line of the user, or None if the last sentence of the other speaker is none."""
    before = talk.sentences[: line.place]
    while before and before[-1].message is line.sentence.message:
        before.pop()
    asked = before[-1] if before and line.sentence.by_user else None
    if asked is None or asked.by_user or not asked.asked:
        return None
    return asked if asked.turn.session_id == line.sentence.turn.session_id else None


def _about(asked: Sentence, answer: str) -> str:
    """Return an answer of few words after what the question was about, its longest noun phrase: "colour: grey"."""
    tongue = tongue_of(asked.message.content)
    clauses = asked.opened[asked.told :] or asked.opened
    phrases = [phrase for clause in clauses for phrase in read_clause(clause, tongue).phrases]
    named = max(phrases, key=lambda phrase: phrase.size, default=None)
    if named is None or content(named.text) & content(answer):
        return answer
    return f"{named.text}{'：' if asked.cues is CHINESE else ': '}{answer}"


def _reason_of(line: Line, reasons: list[Line]) -> Line | None:
    """Return the reason that stands nearest to a decision, first in its own sentence, or None if none is near."""
    near = [
        why
        for why in reasons
        if why.sentence.turn.session_id == line.sentence.turn.session_id
        and abs(why.sentence.turn.number - line.sentence.turn.number) <= REASON_TURNS
    ]
    return min(near, key=lambda why: (abs(why.place - line.place), why.place < line.place), default=None)


def _bare(reason: str, line: Line) -> str:
    """Return a reason without "because"."""
    because = line.sentence.cues.because.match(reason)
    return because[because.lastindex or 0] if because else reason


def accepted_in(talk: Talk, line: Line) -> list[str]:
    """Return the id of the user's message after a line of the assistant; nothing for the user's own lines."""
    if line.sentence.by_user:
        return []
    later = talk.sentences[line.place + 1 :]
    session = line.sentence.turn.session_id
    return [one.message.message_id for one in later if one.by_user and one.turn.session_id == session][:1]
