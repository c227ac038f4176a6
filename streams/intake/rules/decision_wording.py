"""Sentences about the decision on an exchange: the reasons for it, and the changes that would reverse it."""

from __future__ import annotations

from schemas.events import Parts
from schemas.exchanges import Exchange
from streams.intake.rules.decision import Decision
from streams.intake.rules.excluded_sources import EXCLUDED
from streams.intake.rules.promotion import KEEP_RATING, UNREAD, Promoter
from streams.intake.rules.scoring import KEEP_ABOVE, RATING


class Wording:
    """Sentences about the decisions of `promoter`. `rater_name` names the model, or the estimator, that rates.

    Programs parse these sentences. So the words "judge" (the rater) and "value" (the rating) must not change.

    The sentences are true only for the present weights: with a full window, a strong emotion alone or content alone
    reaches exactly the limit `KEEP_ABOVE`, and both together exceed it. "Content" means a content keyword, or text
    that the local estimator rates as personal.
    """

    def __init__(self, promoter: Promoter, rater_name: str) -> None:
        self._promoter, self._rater = promoter, rater_name

    def grounds(self, decision: Decision) -> str:
        """Return the reason why the exchange is kept or dropped, as a clause that callers put after a colon."""
        parts, policy = decision.parts, self._promoter.policy
        if parts.reason == "forced":
            return "the user asked to remember it"
        if parts.reason == EXCLUDED:
            return "memory.excluded_sources names all of its sources"
        if parts.reason == "high_score":
            return f"{_sum(parts)} > {_decimal(KEEP_ABOVE)}, regardless of the judge"
        if parts.reason == "low_score":
            return f"{_sum(parts)} ≤ {_decimal(KEEP_ABOVE)}, and the judge adds at most {_decimal(RATING)}"
        if parts.reason == UNREAD:
            return f"{self._rater} cannot read its language, so there is no reason to drop it"
        told = (
            f"there is no value from {self._rater} (it did not answer, or was not the judge yet), which counts as 0"
            if parts.value is None
            else f"{self._rater} gave it {parts.value} of 10"
        )
        if policy == "all":
            return f"policy all keeps every exchange; {told}"
        if policy == "llm":
            return f"{told}, and policy llm keeps values from {KEEP_RATING} on"
        return f"{told}: {_sum(parts)} {'>' if decision.kept else '≤'} {_decimal(KEEP_ABOVE)}"

    def question(self, parts: Parts) -> str:
        """Return the reason why the decision needs a rating that is not known yet."""
        if self._promoter.policy == "all":
            return f"policy all keeps it, and the value from {self._rater} sets its importance"
        if self._promoter.policy == "llm":
            return f"under policy llm the value from {self._rater} decides"
        return f"{_sum(parts)} is close enough to {_decimal(KEEP_ABOVE)} that the value from {self._rater} decides"

    def change(self, exchange: Exchange, parts: Parts) -> str:
        """Return a sentence that says what would change the outcome. `parts` are the parts of that outcome."""
        match parts.reason:
            case "forced":
                return "Without the remember phrase it would be scored like any other."
            case reason if reason == EXCLUDED:
                return (
                    "Messages of other sources are scored; this would be too if memory.excluded_sources were empty."
                )
            case reason if reason == UNREAD:
                return "A model that reads its language would judge it: see memory.scoring.model."
            case "high_score":
                return "Without the strong emotion, or without its content, the judge would decide."
            case "low_score":
                return "A strong emotion, or content, would let the judge decide; both would keep it."
        if self._promoter.policy == "all":
            return "Under another policy (memory.scoring.policy) it would be scored."
        least = next(value for value in range(11) if self._promoter.rated(exchange, value).kept)
        if parts.reason == "judged_important":
            return f"A value of {least - 1}{' or less' if least > 1 else ''} would drop it."
        also = ""
        if self._promoter.policy == "weighted":
            also = f"; so would {'content' if parts.sentiment else 'a strong emotion'}"
        return f"A value of {least} or more would keep it{also}."


def _sum(parts: Parts) -> str:
    """Return the parts as a sum: `fullness 0.30 + emotion 0 + content 0.20 + value 0.06 = 0.56`."""
    terms = [("fullness", parts.fullness), ("emotion", parts.sentiment), ("content", parts.content)]
    if parts.value is not None:
        terms.append(("value", parts.total - parts.fullness - parts.sentiment - parts.content))
    return f"{' + '.join(f'{name} {_decimal(points)}' for name, points in terms)} = {_decimal(parts.total)}"


def _decimal(thousandths: int) -> str:
    return f"{thousandths / 1000:.2f}" if thousandths else "0"


def lasting(seconds: int) -> str:
    """Return a duration in its largest whole unit: `24 h`, `30 min`, `90 s`."""
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds % length == 0:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
