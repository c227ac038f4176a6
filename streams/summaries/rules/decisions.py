"""The decisions of a day, and the reasons for them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from schemas.summaries import Decision
from streams.summaries.rules.cues import captured
from streams.summaries.rules.kinds import Kind
from streams.summaries.rules.lines import Line
from streams.summaries.rules.noun_phrases import read_clause
from streams.summaries.rules.sentences import (
    CHINESE,
    ITEM_CHARS,
    Sentence,
    content,
    parted,
    reason_in,
    shortened,
    trimmed,
)
from streams.summaries.rules.tagging import tongue_of
from streams.summaries.rules.talk import Found, Talk, united

FEW_WORDS: Final = 2
"""A decision of so few words, such as "5 s then", is put after the thing that was asked about."""

_TOOL: Final = re.compile(r"[A-Z][\w.+#-]*[A-Z\d][\w.+#-]*|[a-z]+-?\d[\w.-]*")
"""Names of tools, which two sayings of a choice have in common."""

REASON_TURNS: Final = 1
"""A reason may be this many turns before or after its decision."""


def decisions(talk: Talk) -> Iterator[Found[Decision]]:
    """Yield what was decided, each with its reason, if one is given.

    A reason belongs to the decision in its own sentence, or else to the nearest decision that has none, if it begins
    its sentence or is about the same. A repeated choice of a tool is yielded once. Proposals that the user refuses
    are left out.
    """
    lines = talk.accepted(Kind.DECISION)
    reasons = _reasons(lines, talk.of(Kind.REASON))
    found: list[Found[Decision]] = []
    for line in lines:
        one = Found(_decision(talk, line, reasons.get(line.at)), line.worth, line.at)
        same = next((place for place, other in enumerate(found) if _same_tool(one.item, other.item)), None)
        if same is None:
            found.append(one)
        else:
            found[same] = _joined(found[same], one)
    yield from found


def _reasons(lines: list[Line], reasons: list[Line]) -> dict[tuple[int, int], Line]:
    """Return the reasons of decisions, by the place of the decision."""
    found: dict[tuple[int, int], Line] = {}
    free: list[Line] = []
    for why in reasons:
        own = [line for line in lines if line.place == why.place and line.at not in found]
        if own:
            found[min(own, key=lambda line: abs(line.first - why.first)).at] = why
        else:
            free.append(why)
    for why in free:
        near = [line for line in lines if line.at not in found and _near(line, why) and _of_same(line, why)]
        if near:
            found[min(near, key=lambda line: (abs(line.place - why.place), line.place > why.place)).at] = why
    return found


def _of_same(line: Line, why: Line) -> bool:
    """True if a reason begins its sentence, or if what it is said of has words of the decision."""
    return not why.first or not content(why.sentence.span(0, why.first)).isdisjoint(content(line.text))


def _near(line: Line, why: Line) -> bool:
    turn, other = line.sentence.turn, why.sentence.turn
    return turn.session_id == other.session_id and abs(turn.number - other.number) <= REASON_TURNS


def _decision(talk: Talk, line: Line, why: Line | None) -> Decision:
    cues = line.sentence.cues
    text, reason = parted(line.text, cues)
    if not line.sentence.by_user and (offer := cues.offers.search(text)):
        text = captured(offer).strip() or text
    sources = [*talk.sources(line)]
    asked = talk.before(line)
    if len(content(text)) <= FEW_WORDS and line.sentence.by_user and asked and not asked.by_user and asked.asked:
        answer, text = text, shortened(_about(asked, text), ITEM_CHARS)
        sources += [asked.message.message_id] if text != answer else []
    if not reason and why:
        reason = reason_in(why.text, why.sentence.cues) or why.text
        sources.append(why.message_id)
    if not reason and line.last < len(line.sentence.clauses):
        reason = reason_in(line.sentence.clauses[line.last].lstrip(), cues)
    return Decision(
        text=text,
        reason=shortened(trimmed(reason), ITEM_CHARS),
        technical=cues.technical.search(text) is not None,
        sources=tuple(dict.fromkeys(sources)),
    )


def _same_tool(one: Decision, other: Decision) -> bool:
    """True if two technical decisions name the same tools, and one of them says nearly nothing else."""
    if not (one.technical and other.technical):
        return False
    tools, others = (set(_TOOL.findall(each.text)) for each in (one, other))
    names = content(" ".join(tools))
    fewest = min(len(content(each.text) - names) for each in (one, other))
    return bool(tools) and tools == others and fewest <= 1


def _joined(one: Found[Decision], again: Found[Decision]) -> Found[Decision]:
    """Return a decision with the reason and the sources of its repetition."""
    found = united(one, again)
    item = found.item.model_copy(update={"reason": one.item.reason or again.item.reason})
    return found._replace(item=item, worth=max(one.worth, again.worth))


def _about(asked: Sentence, answer: str) -> str:
    """Return an answer of few words after what the question was about, its longest noun phrase: "colour: grey"."""
    tongue = tongue_of(asked.message.content)
    clauses = (asked.opened[asked.told :], asked.opened)
    named_in = ([phrase for clause in some for phrase in read_clause(clause, tongue).phrases] for some in clauses)
    phrases = next(filter(None, named_in), [])
    named = max(phrases, key=lambda phrase: phrase.size, default=None)
    if named is None or content(named.text) & content(answer):
        return answer
    return f"{named.text}{'：' if asked.cues is CHINESE else ': '}{answer}"
