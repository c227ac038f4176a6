"""The dashboard's static files: scripts, styles and pictures. They are read once, when this module is imported."""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from typing import Final

from fastapi import APIRouter, HTTPException, Request, Response

_KINDS: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
#: The content type and the content of each file, by name. Only scripts, styles and pictures are served.
STATIC: Final = {
    one.name: (kind, one.read_bytes())
    for one in sorted((files(__package__) / "static").iterdir(), key=lambda one: one.name)
    for suffix, kind in _KINDS.items()
    if one.name.endswith(suffix)
}
#: A hash of all files. The pages use it in the URL of each file, so that a browser does not use cached files of an
#: old release.
VERSION: Final = sha256(b"".join(content for _, content in STATIC.values())).hexdigest()[:12]
_TAG: Final = f'"{VERSION}"'


def file_routes() -> APIRouter:
    """`/ui/static/…`."""
    api = APIRouter(include_in_schema=False)

    @api.get("/ui/static/{name}")
    async def static(name: str, request: Request) -> Response:
        if name not in STATIC:
            raise HTTPException(404, "there is no such file")
        current = request.query_params.get("v") == VERSION
        headers = {"cache-control": "public, max-age=31536000, immutable" if current else "no-cache", "etag": _TAG}
        if request.headers.get("if-none-match") == _TAG:
            return Response(status_code=304, headers=headers)
        kind, content = STATIC[name]
        return Response(content, media_type=kind, headers=headers)

    return api
