"""The doctor's check of Kafka rights: tries a worker's operations on topics and group, without changing anything."""

from __future__ import annotations

from schemas.errors import BrokerUnavailable, SettingsError
from schemas.rights import principal
from schemas.settings import Settings
from schemas.topic_specs import changelog_specs
from streams.doctor.finding import Finding, failed, ok
from streams.kafka.access.rights import try_rights

CHECK = "rights"


async def check_rights(settings: Settings) -> list[Finding]:
    """Return a finding for each missing Kafka right.

    If no connection to a broker is possible, return none, because the check of the broker reports this.
    """
    kafka = settings.kafka
    changelogs = frozenset(spec.name for spec in changelog_specs(kafka))
    try:
        tried = await try_rights(kafka, changelogs, tokens=settings.access.tokens)
    except (BrokerUnavailable, SettingsError):
        return []
    if tried.missing:
        who = principal(kafka)
        return [failed(CHECK, f"Kafka does not allow {who} {right}", right.command(kafka)) for right in tried.missing]
    untried = f"; not tried, because they do not exist: {', '.join(tried.absent)}" if tried.absent else ""
    return [ok(CHECK, f"Kafka allows {principal(kafka)} all operations of a worker{untried}")]
