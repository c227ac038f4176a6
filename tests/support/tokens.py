"""Tokens in the topic, and workers that know them."""

from __future__ import annotations

import httpx

from schemas.settings import Settings
from schemas.times import now_ms
from schemas.tokens import Scope, TokenRecord, issue
from streams.access.token_log import write_token
from tests.support.waiting import until_it_is


async def made(settings: Settings, users: str, *scopes: Scope, name: str = "") -> tuple[TokenRecord, dict[str, str]]:
    """A token in the topic, and the header that brings it."""
    one = issue()
    record = TokenRecord(
        id=one.id,
        name=name or users,
        sha256=one.sha256,
        users=tuple(users.split(",")),
        scopes=scopes or tuple(Scope),
        created_at=now_ms(),
    )
    await write_token(settings.kafka, record)
    return record, bearing(one.secret)


def bearing(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


async def known(http: httpx.AsyncClient, headers: dict[str, str]) -> None:
    """Until the worker has read of the token."""

    async def heard() -> bool:
        return (await http.get("/v1/nowhere", headers=headers)).status_code == 404

    await until_it_is(heard)
