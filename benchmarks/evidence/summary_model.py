"""Summaries of gold days by a model: the product's summariser asks an OpenAI-compatible service for each day."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import click

from benchmarks.evidence.summary_gold import GoldDay
from schemas.settings import AgentsSettings, Settings, SummaryPlan
from schemas.settings.summaries import summary_plan
from schemas.summaries import Summary
from schemas.times import day_of
from streams.intake.rules.exchanges import Limits
from streams.models.chat import ChatModel
from streams.summaries.rules import turns_of
from streams.summaries.summariser import Malformed, ModelSummariser, Unavailable
from streams.telemetry.metrics import Metrics

#: Failures that every day would have, and what to do about them.
HOPELESS: Final = {
    "APIConnectionError": "no server answers there",
    "AuthenticationError": "the service refuses the key",
    "PermissionDeniedError": "the service refuses the key for this model",
    "NotFoundError": "the service does not know the model, or the URL lacks its /v1",
}


class ByModel(NamedTuple):
    """The summaries of the days, empty for days without one; the reasons of these; and how many texts were cut."""

    summaries: list[Summary]
    malformed: Counter[str]
    unanswered: Counter[str]
    cut: dict[str, int]

    def told(self) -> list[str]:
        return [
            f"texts cut: {_counts(self.cut)}",
            f"days without a usable answer, which Siltstone would sum up by its rules: {_counts(self.malformed)}",
            f"days without an answer: {_counts(self.unanswered)}",
        ]


def plan_of(model: str, base_url: str) -> SummaryPlan:
    """Return the plan that the settings give, with this model; `base_url` is that of its service if it is not empty.

    Raises ClickException if no service can be asked.
    """
    settings = Settings.load()
    llm = settings.llm
    if base_url:
        provider = model.partition("/")[0].lower()
        own = llm.providers.get(provider)
        key = own.api_key if own and own.api_key.get_secret_value() else llm.api_key
        service = {"api_key": key, "base_url": base_url, "context_tokens": own.context_tokens if own else None}
        llm = type(llm).model_validate({**dict(llm), "providers": {**llm.providers, provider: service}})
    agents = AgentsSettings(summary=settings.agents.summary.model_copy(update={"model": model}))
    plan = summary_plan(agents, llm, settings.data_dir, {})
    if plan.model is None:
        raise click.ClickException("; ".join(map(str, plan.warnings)) or "--model names no model")
    return plan


def summed_up(days: Sequence[GoldDay], plan: SummaryPlan, limits: Limits) -> ByModel:
    """Ask the model for the summary of each day. Raises ClickException for a failure that every day would have."""
    return asyncio.run(_summed_up(days, plan, limits))


async def _summed_up(days: Sequence[GoldDay], plan: SummaryPlan, limits: Limits) -> ByModel:
    assert plan.model is not None
    chat, metrics = ChatModel(plan.model), Metrics()
    summariser = ModelSummariser(chat, plan, metrics)
    found = ByModel([], Counter(), Counter(), {})
    try:
        for day in days:
            turns = turns_of(day.messages, limits)
            date = day_of(turns[0].messages[0].timestamp, plan.timezone).isoformat()
            answer = await summariser.summarise(turns, date)
            if isinstance(answer, Unavailable) and answer.retry_after:
                await asyncio.sleep(answer.retry_after)
                answer = await summariser.summarise(turns, date)
            if isinstance(answer, Unavailable) and answer.reason in HOPELESS:
                what = f"{plan.model.base_url}: {HOPELESS[answer.reason]} ({answer.reason})"
                raise click.ClickException(what)
            if isinstance(answer, Malformed):
                found.malformed[answer.reason] += 1
            if isinstance(answer, Unavailable):
                found.unanswered[answer.reason or "the service asked for a pause"] += 1
            found.summaries.append(answer if isinstance(answer, Summary) else Summary())
    finally:
        await chat.close()
    for metric in metrics.summary_texts_cut.collect():
        for sample in metric.samples:
            if sample.name.endswith("_total"):
                found.cut[sample.labels["reason"]] = int(sample.value)
    return found


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{what} {number}" for what, number in sorted(counts.items())) or "none"
