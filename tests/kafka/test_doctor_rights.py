"""`doctor` names each right that is missing, with the command that gives it."""

from __future__ import annotations

from schemas.rights import Right
from schemas.settings import Settings
from streams.doctor.finding import Outcome
from streams.doctor.rights import check_rights
from tests.kafka.acls import grant
from tests.kafka.secured import USER, Secured
from tests.kafka.test_rights import create, fresh, rights_of


async def test_each_right_that_is_missing_is_a_finding_with_its_command(safe: Secured, settings: Settings) -> None:
    """Nobody may do anything; then all is given but two; then all."""
    kafka, changelogs = fresh(safe)
    await create(safe, kafka, changelogs)
    of_its_own = settings.model_copy(update={"kafka": kafka})
    rights = rights_of(kafka, changelogs)
    found = await check_rights(of_its_own)
    assert {finding.outcome for finding in found} == {Outcome.FAILED}
    assert {finding.what for finding in found} == {f"Kafka does not allow User:{USER} {right}" for right in rights}
    left = [
        right for right in rights if right.name.endswith(("long-term", kafka.group_id)) and right.operation == "READ"
    ]
    await grant(safe.brokers, USER, [right for right in rights if right not in left])
    found = await check_rights(of_its_own)
    assert [finding.todo for finding in found] == [right.command(kafka) for right in left]
    await grant(safe.brokers, USER, left)
    (finding,) = await check_rights(of_its_own)
    assert (finding.outcome, finding.what) == (Outcome.OK, f"Kafka allows User:{USER} all operations of a worker")


async def test_what_is_to_be_made_needs_the_right_to(safe: Secured, settings: Settings) -> None:
    kafka, changelogs = fresh(safe)
    await grant(safe.brokers, USER, rights_of(kafka, changelogs))
    found = await check_rights(settings.model_copy(update={"kafka": kafka}))
    assert f"Kafka does not allow User:{USER} {Right('CREATE', 'topic', kafka.topic_prefix + 'long-term')}" in {
        finding.what for finding in found
    }
    assert len(found) == 9
