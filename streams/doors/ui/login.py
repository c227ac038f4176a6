"""Login and logout."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from schemas.errors import TokenRefused
from streams.access.admission import Admission
from streams.doors.ui.door import HOME, LOGIN, START
from streams.doors.ui.pages import Pages
from streams.doors.ui.session import Form, LoginForm, cookie, fits, is_secure
from streams.doors.ui.viewer import Looking

WRONG = "This token is not known, or it was revoked or has expired."
TOO_LONG = (
    "This token is valid, but too long for a cookie: have its provider put fewer claims into it, or log in with a "
    "token from `siltstone token add`."
)


def login_routes(admission: Admission | None, pages: Pages) -> APIRouter:
    """Return the routes of `/ui`, `/ui/login` and `/ui/logout`."""
    api = APIRouter(include_in_schema=False)

    def page(next_: str, refused: str = "", status: int = 200) -> HTMLResponse:
        content = pages.fragment("login.html", tokens=admission is not None, next=_ours(next_), refused=refused)
        return HTMLResponse(content, status)

    @api.get("/ui")
    async def entrance() -> HTMLResponse:
        """The page to which other sites may link.

        It loads the next page itself, because a browser that follows a link of another site sends no cookie.
        """
        return HTMLResponse(pages.fragment("entrance.html", start=START))

    @api.get("/ui/start")
    async def start(viewer: Looking) -> Response:
        """Redirect to the first screen that the viewer may see."""
        if viewer.sees_all:
            return RedirectResponse("/ui/overview", 303)
        whose = f"?user_id={quote(viewer.users[0], safe='')}" if viewer.users else ""
        return RedirectResponse(f"/ui/me{whose}", 303)

    @api.get("/ui/login")
    async def form(next: str = HOME) -> HTMLResponse:  # noqa: A002 - the parameter's name
        return page(next)

    @api.post("/ui/login")
    async def login(request: Request, fields: LoginForm) -> Response:
        """Store the token in the cookie, if it is valid."""
        secret, wanted = fields.get("token", "").strip(), fields.get("next", HOME)
        if admission is None:
            return RedirectResponse(HOME, 303)
        try:
            if not secret.isascii() or not secret.isprintable() or set(secret) & set(' ;,"\\'):
                raise TokenRefused(WRONG)
            await admission.principal(secret)
        except TokenRefused:
            return page(wanted, WRONG, 401)
        if not fits(secret):
            return page(wanted, TOO_LONG, 422)
        answer = RedirectResponse(_ours(wanted), 303)
        answer.headers.append("set-cookie", cookie(secret, is_secure(request)))
        return answer

    @api.post("/ui/logout")
    async def logout(request: Request, _: Form) -> Response:
        answer = RedirectResponse(LOGIN, 303)
        answer.headers.append("set-cookie", cookie("", is_secure(request)))
        return answer

    return api


def _ours(address: str) -> str:
    """Return the address to load after the login: `address` if it belongs to the dashboard, or else `HOME`.

    >>> _ours("/ui/me?user_id=ann"), _ours("//elsewhere/ui"), _ours("https://elsewhere")
    ('/ui/me?user_id=ann', '/ui', '/ui')
    """
    ours = address == HOME or address.startswith(("/ui/", "/ui?"))
    return address if ours and address.isprintable() and "\\" not in address else HOME
