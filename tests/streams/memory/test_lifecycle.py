"""What becomes of changes of state that the broker does not take."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from schemas.memories import Transition
from tests.streams.memory.test_cleanup import TOPICS, Setting, opened


def published(setting: Setting) -> list[Transition]:
    values = [value for topic, _, _, value in setting.broker.log if topic == TOPICS.transitions]
    return [Transition.model_validate_json(value or b"") for value in values]


@pytest.mark.slow
async def test_what_the_broker_does_not_take_is_published_at_the_next_recompute(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The worker goes on, and nothing is marked that is not in the topic."""
    async with opened(tmp_path) as setting:
        await setting.keep("one")
        setting.broker.refusing = {TOPICS.transitions}
        agent = setting.lifecycle()
        assert await agent.recompute() == setting.clock.now()
        assert published(setting) == []
        assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
            "shard 1: 1 changes of state are published later: Refused: t.transitions"
        ]
        setting.broker.refusing = set()
        await agent.recompute()
        assert [(one.from_, one.to) for one in published(setting)] == [("active", "deprecated")]
        await agent.recompute()
        assert len(published(setting)) == 1
