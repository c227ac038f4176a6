"""A refusal while a worker runs is told when it begins, once a minute, and when it is over."""

from __future__ import annotations

import pytest

from schemas.errors import BrokerRefused
from streams.kafka.access.refusal_watch import RefusalWatch

WRONG = BrokerRefused("kafka:9093", "the password of user ann is wrong", "correct kafka.sasl_password")


class Asked:
    """Answers as it is told to, and counts."""

    answer: BrokerRefused | None = WRONG
    times = 0

    async def __call__(self) -> BrokerRefused | None:
        self.times += 1
        return self.answer


async def test_it_is_told_at_its_beginning_once_a_minute_and_at_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING")
    now, asked = [0.0], Asked()
    refused = RefusalWatch(asked, lambda: now[0])
    for second in range(130):
        now[0] = float(second)
        await refused.tick(reached=False)
    assert refused.reason == str(WRONG)
    await refused.tick(reached=True)
    await refused.tick(reached=True)
    assert (refused.reason, caplog.messages) == ("", [*[str(WRONG)] * 3, "Kafka grants access again"])
    assert asked.times == 26


async def test_a_broker_that_is_away_refuses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING")
    asked = Asked()
    asked.answer = None
    refused = RefusalWatch(asked, lambda: 0.0)
    await refused.tick(reached=False)
    await refused.tick(reached=True)
    assert (refused.reason, caplog.messages) == ("", [])


async def test_nobody_is_asked_while_the_broker_is_reached() -> None:
    asked = Asked()
    await RefusalWatch(asked, lambda: 0.0).tick(reached=True)
    assert asked.times == 0
