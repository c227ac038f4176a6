"""Every route of the API has a policy: whom it is about, and the scope that it takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from schemas.settings import AccessSettings, Settings
from streams.access.admission import Admission
from streams.access.known_tokens import KnownTokens
from streams.app import Siltstone
from streams.doors.application import build
from streams.doors.http.policies import POLICIES, About
from tests.support.late_api import api_of


def every_route(routes: Iterable[Any]) -> Iterator[Any]:
    """Those of routers that are included as well."""
    for route in routes:
        if hasattr(route, "methods"):
            yield route
        else:
            yield from every_route(route.original_router.routes)


def test_no_route_is_without_a_policy_and_no_policy_without_a_route(settings: Settings) -> None:
    """A method and a path each, as the application itself has them; HEAD goes as GET."""
    described = {
        f"{method} {route.path}"
        for route in every_route(api_of(settings).routes)
        for method in route.methods - {"HEAD"}
    }
    assert described == POLICIES.keys()


def test_each_address_and_method_comes_to_the_same_policy_whatever_is_in_it() -> None:
    """A session's id may have slashes in it: two routes that fit one address ask for the same."""
    ends = {name: one for name, one in POLICIES.items() if name.startswith("GET /v1/sessions/")}
    assert len(set(ends.values())) == 1


@pytest.mark.parametrize("open_probes", [True, False])
def test_probes_have_a_switch_of_their_own(settings: Settings, open_probes: bool) -> None:
    access = AccessSettings(tokens=True, open_probes=open_probes)
    worker = Siltstone(settings.model_copy(update={"access": access}))
    tokens = KnownTokens(lambda: 0)
    tokens.complete = True
    asked = TestClient(build(worker.service, worker.forwarding, Admission(tokens)))
    probes = {name.partition(" ")[2] for name, one in POLICIES.items() if one.about is About.PROBE}
    assert probes == {"/healthz", "/readyz", "/metrics"}
    assert {asked.get(path).status_code == 401 for path in probes} == {not open_probes}
    assert asked.get("/v1/memories", params={"user_id": "ann"}).headers["WWW-Authenticate"] == "Bearer"
