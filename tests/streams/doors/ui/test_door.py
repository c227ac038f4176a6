"""Who comes in to the dashboard, what a browser is sent with its pages, and what other sites cannot do."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from schemas.settings import HttpSettings
from schemas.tokens import Scope
from streams.access.authorize import Principal
from streams.doors.ui.session import COOKIE, cookie, form_token
from tests.streams.doors.ui.opened import BASE, Doorkeeper, browser, log_in
from tests.support.late_api import http_of
from tests.support.talk import Talk, talk


@pytest.fixture
async def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Talk]:
    async with talk(tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture
def doorkeeper() -> Doorkeeper:
    return Doorkeeper()


@pytest.fixture
async def outside(here: Talk, doorkeeper: Doorkeeper) -> AsyncIterator[httpx.AsyncClient]:
    """A browser that has not logged in where tokens are asked for."""
    async with browser(here.worker, doorkeeper.admission) as http:
        yield http


@pytest.fixture
async def anybody(here: Talk) -> AsyncIterator[httpx.AsyncClient]:
    """A browser where none are."""
    async with browser(here.worker) as http:
        yield http


async def test_a_browser_without_a_token_is_sent_to_the_login_and_comes_back(
    outside: httpx.AsyncClient, doorkeeper: Doorkeeper
) -> None:
    sent = await outside.get("/ui/memories", params={"user_id": "ann"})
    assert (sent.status_code, sent.headers["location"]) == (303, "/ui/login?next=%2Fui%2Fmemories%3Fuser_id%3Dann")
    form = await outside.get(sent.headers["location"])
    assert 'value="/ui/memories?user_id=ann"' in form.text
    answer = await outside.post(
        "/ui/login", data={"token": doorkeeper.token("*"), "next": "/ui/memories?user_id=ann"}
    )
    assert (answer.status_code, answer.headers["location"]) == (303, "/ui/memories?user_id=ann")
    assert (await outside.get("/ui/sessions")).status_code == 200


async def test_the_cookie_is_read_by_no_script_and_goes_to_the_dashboard_alone(
    outside: httpx.AsyncClient, doorkeeper: Doorkeeper
) -> None:
    secret = doorkeeper.token("*")
    given = (await log_in(outside, secret)).headers["set-cookie"]
    assert given == f"{COOKIE}={secret}; Path=/ui; HttpOnly; SameSite=Strict"
    for path in ("/v1/memories?user_id=ann", "/v1/stats/states"):
        as_cookie = await outside.get(path, headers={"cookie": f"{COOKIE}={secret}"})
        assert as_cookie.status_code == 401


@pytest.mark.parametrize(
    "said",
    [{"x-forwarded-proto": "https"}, {"origin": "https://{host}"}],
    ids=["a proxy", "the browser alone"],
)
async def test_a_cookie_that_came_by_https_goes_by_no_other_way(
    outside: httpx.AsyncClient, doorkeeper: Doorkeeper, said: dict[str, str]
) -> None:
    """A browser tells where its form is from; not every proxy tells how it was asked."""
    headers = {name: value.format(host=outside.base_url.netloc.decode()) for name, value in said.items()}
    answer = await outside.post("/ui/login", data={"token": doorkeeper.token("*")}, headers=headers)
    assert (answer.status_code, answer.headers["set-cookie"].endswith("; Secure")) == (303, True)


async def test_a_wrong_token_is_refused_and_nothing_is_kept(outside: httpx.AsyncClient) -> None:
    for wrong in ("slt_0011223344556677_no", "", "a b", "x" * 9000, "é", 'slt_1"; Path=/'):
        answer = await log_in(outside, wrong)
        assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)
        assert "token is not known" in answer.text


async def test_a_token_that_no_browser_would_keep_is_told_of(
    here: Talk, monkeypatch: pytest.MonkeyPatch, doorkeeper: Doorkeeper
) -> None:
    """A provider's with many claims. Logged in with it one would come back to the login, again and again."""
    known, long = Principal.of("oidc/ann", ["*"], [Scope.READ]), "x" * 4090

    async def principal(secret: str) -> Principal:
        assert secret == long
        return known

    monkeypatch.setattr(doorkeeper.admission, "principal", principal)
    async with browser(here.worker, doorkeeper.admission) as http:
        answer = await log_in(http, long)
    assert (answer.status_code, "set-cookie" in answer.headers) == (422, False)
    assert "too long for a cookie" in answer.text


async def test_a_cookie_that_cannot_be_read_is_replaced(anybody: httpx.AsyncClient) -> None:
    """And the page's forms are bound to the new one."""
    answer = await anybody.get("/ui/me?user_id=u", headers={"cookie": f'{COOKIE}="; a=b'})
    (secret,) = re.findall(rf"{COOKIE}=([^;]+)", answer.headers["set-cookie"])
    assert form_token(secret) in answer.text


async def test_without_a_dashboard_the_api_is_there_and_nothing_else(here: Talk) -> None:
    """No page, no cookie, no file; whoever asks `/ui` is told as of any other address."""
    settings = here.worker.settings.model_copy(update={"http": HttpSettings(dashboard=False)})
    async with http_of(settings) as http:
        for path in ("/ui", "/ui/login", "/ui/sessions", "/ui/static/siltstone.css"):
            answer = await http.get(path, headers={"cookie": f"{COOKIE}=x", "accept": "text/html"})
            assert (answer.status_code, answer.json()) == (404, {"detail": "Not Found"})
            assert "set-cookie" not in answer.headers
        assert (await http.get("/healthz")).status_code == 200


async def test_logging_out_takes_the_cookie_back(outside: httpx.AsyncClient, doorkeeper: Doorkeeper) -> None:
    secret = doorkeeper.token("*")
    await log_in(outside, secret)
    answer = await outside.post("/ui/logout", data={"form_token": form_token(secret)})
    assert answer.headers["set-cookie"] == cookie("", False)
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert (await outside.get("/ui/sessions")).status_code == 303


@pytest.mark.parametrize(
    "next_", ["https://elsewhere/ui", "//elsewhere/ui", "/\\elsewhere", "/uix", "/ui/a\r\nset-cookie: x=y", ""]
)
async def test_a_login_leads_to_the_dashboard_alone(
    next_: str, outside: httpx.AsyncClient, doorkeeper: Doorkeeper
) -> None:
    answer = await outside.post("/ui/login", data={"token": doorkeeper.token("*"), "next": next_})
    assert answer.headers["location"] == "/ui"


async def test_every_answer_forbids_what_is_not_ours(outside: httpx.AsyncClient, doorkeeper: Doorkeeper) -> None:
    """Pages, files, failures and redirects."""
    login = await outside.get("/ui/login")
    await log_in(outside, doorkeeper.token("*"))
    answers = [
        login,
        await outside.get("/ui"),
        await outside.get("/ui/sessions"),
        await outside.get("/ui/static/siltstone.css"),
        await outside.get("/ui/nowhere"),
        await outside.get("/ui/memories/no-id"),
        await outside.get("/ui/worker", headers={"accept": "application/json"}),
    ]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cache-control"] == ("no-cache" if "static" in str(answer.url) else "no-store")
    assert (await outside.get("/v1/stats/states")).headers.get("content-security-policy") is None


async def test_a_form_of_another_page_is_refused(here: Talk, anybody: httpx.AsyncClient) -> None:
    """Without the session's value, from another site, without the cookie, or as what only scripts send."""
    await anybody.get("/ui/sessions")
    right = {"form_token": form_token(anybody.cookies[COOKIE])}
    path = "/ui/me/forget?user_id=u"
    refused = [
        await anybody.post(path, data={"sure": "u"}),
        await anybody.post(path, data={"sure": "u", "form_token": "0" * 64}),
        await anybody.post(path, data=right, headers={"origin": "http://elsewhere"}),
        await anybody.post(path, data=right, headers={"origin": "null"}),
        await anybody.post(path, json={"sure": "u", **right}),
        await anybody.post(path, content=b""),
    ]
    assert [answer.status_code for answer in refused] == [403, 403, 403, 403, 415, 415]
    anybody.cookies.clear()
    assert (await anybody.post(path, data={"sure": "u", "form_token": form_token("")})).status_code == 403
    assert here.log.records[here.worker.topics.long_term] == []


async def test_where_browsers_name_no_origin_they_say_whether_it_is_another_site(anybody: httpx.AsyncClient) -> None:
    await anybody.get("/ui/sessions")
    data = {"form_token": form_token(anybody.cookies[COOKIE])}
    del anybody.headers["origin"]
    foreign = await anybody.post("/ui/me/forget?user_id=u", data=data, headers={"sec-fetch-site": "cross-site"})
    own = await anybody.post("/ui/me/forget?user_id=u", data=data, headers={"sec-fetch-site": "same-origin"})
    assert (foreign.status_code, own.status_code) == (403, 422)


async def test_a_form_that_is_too_large_or_no_form_is_refused(anybody: httpx.AsyncClient) -> None:
    await anybody.get("/ui/sessions")
    kind = {"content-type": "application/x-www-form-urlencoded"}
    large = await anybody.post("/ui/me/forget?user_id=u", content=b"a=" + b"b" * 1_100_000, headers=kind)
    broken = await anybody.post("/ui/me/forget?user_id=u", content=b"a", headers=kind)
    not_text = await anybody.post("/ui/me/forget?user_id=u", content=b"a=\xff", headers=kind)
    assert (large.status_code, broken.status_code, not_text.status_code) == (413, 422, 422)


async def test_a_bound_token_has_its_own_memory_and_no_other_screen(
    outside: httpx.AsyncClient, doorkeeper: Doorkeeper
) -> None:
    await log_in(outside, doorkeeper.token("ann"))
    start = await outside.get("/ui/start")
    assert start.headers["location"] == "/ui/me?user_id=ann"
    mine = await outside.get("/ui/me")  # the guard writes in whose it is
    assert "Memories about ann" in mine.text
    assert re.findall(r'<a href="(/ui/[a-z-]+)"', mine.text) == ["/ui/me"] * 2
    others = ["/ui/overview", "/ui/flow", "/ui/sessions", "/ui/memories?user_id=ann", "/ui/search", "/ui/lifecycle"]
    for path in [*others, "/ui/dead-letters", "/ui/worker", "/ui/worker/flow", "/ui/worker/people"]:
        assert (await outside.get(path)).status_code == 403, path
    for path in ("/ui/me?user_id=bob", "/ui/me/export?user_id=bob", "/ui/me?user_id=ann&user_id=bob"):
        answer = await outside.get(path)
        assert (answer.status_code, "there is no such memory" in answer.text) == (404, True), path


async def test_a_bound_token_changes_nothing_of_others(
    here: Talk, outside: httpx.AsyncClient, doorkeeper: Doorkeeper
) -> None:
    """Whatever user the form says: the parameter is what is looked at, and what counts."""
    secret = doorkeeper.token("ann")
    await log_in(outside, secret)
    data = {"form_token": form_token(secret), "user_id": "ann", "sure": "bob"}
    memory = "/ui/memories/00000000-0000-0000-0000-000000000000"
    for path in ("/ui/me/forget", f"{memory}/forget", f"{memory}/edit", f"{memory}/pin"):
        assert (await outside.post(f"{path}?user_id=bob", data=data)).status_code == 404
    assert here.log.records[here.worker.topics.long_term] == []


async def test_scopes_decide_which_buttons_there_are(outside: httpx.AsyncClient, doorkeeper: Doorkeeper) -> None:
    secret = doorkeeper.token("*", [Scope.READ])
    await log_in(outside, secret)
    page = (await outside.get("/ui/me", params={"user_id": "ann"})).text
    assert "Forget everything" not in page
    assert "Dead letters" not in page
    data = {"form_token": form_token(secret), "sure": "ann"}
    assert (await outside.post("/ui/me/forget?user_id=ann", data=data)).status_code == 403
    assert (await outside.get("/ui/dead-letters")).status_code == 403


async def test_a_token_for_several_users_chooses_among_them(
    outside: httpx.AsyncClient, doorkeeper: Doorkeeper
) -> None:
    await log_in(outside, doorkeeper.token("bob,ann"))
    assert (await outside.get("/ui/start")).headers["location"] == "/ui/me?user_id=ann"
    page = (await outside.get("/ui/me?user_id=ann")).text
    assert '<a class="chip" href="/ui/me?user_id=bob">bob</a>' in page


async def test_what_asks_as_a_program_is_answered_as_one(outside: httpx.AsyncClient) -> None:
    json = await outside.get("/ui/worker", headers={"accept": "application/json"})
    assert (json.status_code, json.headers["content-type"]) == (401, "application/json")
    by_htmx = await outside.get("/ui/overview/now", headers={"hx-request": "true"})
    assert (by_htmx.status_code, by_htmx.headers["hx-redirect"]) == (200, "/ui/login")


async def test_a_failure_is_a_page_with_what_to_do(anybody: httpx.AsyncClient) -> None:
    for path in ("/ui/nowhere", "/ui/session?user_id=a&session_id=b", "/ui/memories/x?user_id=a"):
        answer = await anybody.get(path)
        assert answer.status_code in (404, 422)
        assert answer.headers["content-type"].startswith("text/html")
        assert "To the start" in answer.text


async def test_what_nobody_foresaw_is_a_page_without_its_text(
    anybody: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may quote what was said."""

    async def fails(_: object) -> None:
        raise ZeroDivisionError("my secret")

    monkeypatch.setattr("streams.doors.ui.sessions.people_of", fails)
    answer = await anybody.get("/ui/sessions")
    assert answer.status_code == 500
    assert "the worker&#39;s log says more" in answer.text
    assert "my secret" not in answer.text


async def test_without_tokens_the_session_is_random_and_the_login_says_that_none_is_asked_for(
    anybody: httpx.AsyncClient,
) -> None:
    answer = await anybody.get("/ui/sessions")
    assert "HttpOnly; SameSite=Strict" in answer.headers["set-cookie"]
    assert len(anybody.cookies[COOKIE]) > 40
    assert "set-cookie" not in (await anybody.get("/ui/sessions")).headers
    assert "No token is required here" in (await anybody.get("/ui/login")).text
    assert (await log_in(anybody, "whatever")).headers["location"] == "/ui"
    assert BASE in str(answer.url)


async def test_a_login_is_used_by_no_other_site_and_a_link_may_lead_in(
    here: Talk, outside: httpx.AsyncClient, doorkeeper: Doorkeeper
) -> None:
    """What the cookie becomes is no token of a program: which page has sent it is asked before."""
    secret = doorkeeper.token("*")
    await log_in(outside, secret)
    data = {"form_token": form_token(secret), "sure": "u"}
    elsewhere = await outside.post("/ui/me/forget?user_id=u", data=data, headers={"origin": "http://elsewhere"})
    assert elsewhere.status_code == 403
    assert here.log.records[here.worker.topics.long_term] == []
    followed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert (await outside.get("/ui/memories?user_id=u", headers=followed)).status_code == 403
    entrance = await outside.get("/ui", headers=followed)
    assert entrance.status_code == 200
    assert 'http-equiv="refresh" content="0; url=/ui/start"' in entrance.text
    assert "set-cookie" not in entrance.headers
