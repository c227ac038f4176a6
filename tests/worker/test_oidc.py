"""A worker that takes the tokens of a provider beside its own, over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from schemas.settings import AccessSettings, Settings
from streams.app import Siltstone
from tests.support.oidc_provider import KEYS, Provider
from tests.support.tokens import bearing, known, made

pytestmark = pytest.mark.slow


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as one:
        yield one


@pytest.fixture
def settings(settings: Settings, provider: Provider) -> Settings:
    access = AccessSettings(tokens=True, oidc=provider.settings(users_claim="may_see"))
    return settings.model_copy(update={"access": access})


async def test_its_tokens_open_what_their_claims_say_and_ours_go_on_without_it(
    settings: Settings, provider: Provider, worker: Siltstone, http: httpx.AsyncClient
) -> None:
    provider.answers[KEYS] = 500
    _, ours = await made(settings, "ann")
    await known(http, ours)
    later = await http.get("/v1/memories", headers=bearing(provider.token()))
    assert (later.status_code, "Retry-After" in later.headers) == (503, True)
    assert (await http.get("/v1/memories", headers=ours)).status_code == 200


async def test_who_it_is_and_what_may_be_done_is_decided_as_with_our_own_tokens(
    settings: Settings, provider: Provider, worker: Siltstone, http: httpx.AsyncClient
) -> None:
    ann, reader = bearing(provider.token()), bearing(provider.token(scope="openid read"))
    everybody = bearing(provider.token(may_see=["*"], scope="read"))
    text = {"text": "I live in Oslo"}
    assert (await http.post("/v1/memories", headers=ann, params={"wait": "applied"}, json=text)).status_code == 202
    assert (await http.get("/v1/memories", headers=reader)).json()["total"] == 1
    assert (await http.get("/v1/memories", headers=everybody, params={"user_id": "ann"})).json()["total"] == 1
    assert (await http.get("/v1/stats/states", headers=everybody)).status_code == 200
    assert (await http.post("/v1/memories", headers=reader, json=text)).status_code == 403
    assert (await http.get("/v1/memories", headers=bearing(provider.token(scope="")))).status_code == 403
    assert (await http.get("/v1/memories", headers=ann, params={"user_id": "bob"})).status_code == 404
    wrong = [
        await http.get("/v1/memories", headers=bearing(secret))
        for secret in (provider.token(aud="other"), provider.token(exp=1), "slt_0011223344556677_x", "eyJ.e.e")
    ]
    assert {answer.status_code for answer in wrong} == {401}
    assert len({answer.text for answer in wrong}) == 1
