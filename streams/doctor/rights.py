"""The rights: what a worker will do with topics and its group is tried, and leaves no trace."""

from __future__ import annotations

from schemas.errors import BrokerUnavailable, SettingsError
from schemas.rights import principal
from schemas.settings import Settings
from schemas.topic_specs import changelog_specs
from streams.doctor.finding import Finding, failed, ok
from streams.kafka.access.rights import try_rights

CHECK = "rights"


async def check_rights(settings: Settings) -> list[Finding]:
    """One finding for each right that is missing; none where no broker lets us in, which is told already."""
    kafka = settings.kafka
    changelogs = frozenset(spec.name for spec in changelog_specs(kafka))
    try:
        tried = await try_rights(kafka, changelogs, tokens=settings.access.tokens)
    except (BrokerUnavailable, SettingsError):
        return []
    if tried.missing:
        who = principal(kafka)
        return [failed(CHECK, f"Kafka does not allow {who} {right}", right.command(kafka)) for right in tried.missing]
    untried = f"; not tried, because they are not there: {', '.join(tried.absent)}" if tried.absent else ""
    return [ok(CHECK, f"Kafka allows {principal(kafka)} what a worker does{untried}")]
