"""The API's documentation pages. Their files come from the package `fastapi-offline`, not from another host.

The security policy of a page lists its scripts. So a browser runs no other scripts, contacts no other host, and does
not show the page in a frame.
"""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files
from typing import Annotated, Final

from fastapi import APIRouter, FastAPI, HTTPException, Path
from fastapi.openapi.docs import get_redoc_html, get_swagger_ui_html
from fastapi.responses import HTMLResponse, Response

_FILES: Final = {
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "redoc.standalone.js": "text/javascript",
    "favicon.png": "image/png",
}
_AT: Final = "/docs/files"
_INLINE_SCRIPT: Final = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def page_routes(api: FastAPI) -> APIRouter:
    """Return the routes of `/docs` and `/redoc`, and of the files that these pages load."""
    routes = APIRouter(include_in_schema=False)
    title, described, icon = api.title, api.openapi_url or "", f"{_AT}/favicon.png"

    @routes.get("/docs")
    async def docs() -> Response:
        page = get_swagger_ui_html(
            openapi_url=described,
            title=title,
            swagger_js_url=f"{_AT}/swagger-ui-bundle.js",
            swagger_css_url=f"{_AT}/swagger-ui.css",
            swagger_favicon_url=icon,
            swagger_ui_parameters={"validatorUrl": None},  # otherwise the page would call an online validator
        )
        return _within_policy(page)

    @routes.get("/redoc")
    async def redoc() -> Response:
        page = get_redoc_html(
            openapi_url=described,
            title=title,
            redoc_js_url=f"{_AT}/redoc.standalone.js",
            redoc_favicon_url=icon,
            with_google_fonts=False,
        )
        return _within_policy(page)

    @routes.get(f"{_AT}/{{name}}")
    def file(name: Annotated[str, Path()]) -> Response:
        if name not in _FILES:
            raise HTTPException(404, "there is no such file")
        content = files("fastapi_offline").joinpath("static", name).read_bytes()
        return Response(content, media_type=_FILES[name], headers={"X-Content-Type-Options": "nosniff"})

    return routes


def _within_policy(page: HTMLResponse) -> HTMLResponse:
    """Add the security policy to a page.

    The policy allows inline styles and `data:` images, because both pages create them at run time. It allows web
    workers, because ReDoc runs its search in a web worker.
    """
    inline = [
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in _INLINE_SCRIPT.findall(bytes(page.body).decode())
    ]
    page.headers["Content-Security-Policy"] = "; ".join(
        [
            "default-src 'none'",
            " ".join(["script-src 'self'", *inline]),
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data:",
            "worker-src blob:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
    )
    page.headers["X-Content-Type-Options"] = "nosniff"
    page.headers["Referrer-Policy"] = "no-referrer"
    return page
