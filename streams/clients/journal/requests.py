"""What the broker asks of its store, in the dialect of S3: the part of it that Tansu speaks."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import formatdate
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qs, unquote
from xml.sax.saxutils import escape, unescape

from schemas.errors import JournalError
from streams.clients.journal.objects import Objects, Place

#: The bucket in which all of it is.
BUCKET: Final = "tansu"
#: Keys of one answer to a list.
PAGE: Final = 5_000
_KEY: Final = re.compile(rb"<Key>([^<]*)</Key>")


def answered(objects: Objects, method: str, target: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """The answer to one request. Raises `JournalError` where what is to be kept cannot be."""
    if "origin" in headers:  # a page in a browser, which has no business here
        return _answer("403 Forbidden")
    path, _, query = target.partition("?")
    key = unquote(path).removeprefix(f"/{BUCKET}").removeprefix("/")
    if method == "PUT" and key:
        return _put(objects, key, headers, body)
    if method in ("GET", "HEAD") and key:
        return _get(objects, key, headers, method == "HEAD")
    if method == "GET":
        asked = parse_qs(query)
        after = max(asked.get("start-after", [""])[0], asked.get("continuation-token", [""])[0])
        return _listed(objects, asked.get("prefix", [""])[0], after)
    if method == "DELETE" and key:
        objects.delete(key)
        return _answer("204 No Content")
    if method == "POST" and query == "delete":
        return _deleted(objects, body)
    return _answer("501 Not Implemented")


def _put(objects: Objects, key: str, headers: Mapping[str, str], body: bytes) -> bytes:
    before, wanted = objects.find(key), headers.get("if-match")
    if headers.get("if-none-match") == "*" and before is not None:
        return _answer("412 Precondition Failed")
    if wanted and (before is None or _etag(before) != wanted):
        return _answer("412 Precondition Failed")
    return _answer("200 OK", ETag=_etag(objects.put(key, body)))


def _get(objects: Objects, key: str, headers: Mapping[str, str], head: bool) -> bytes:
    place = objects.find(key)
    if place is None:
        return _answer("404 Not Found")
    if headers.get("if-none-match") == _etag(place):
        return _answer("304 Not Modified")
    told = {"ETag": _etag(place), "Last-Modified": formatdate(place.when / 1000, usegmt=True)}
    if head:
        return _head("200 OK", place.length, told)
    return _answer("200 OK", objects.read(place), **told)


def _listed(objects: Objects, prefix: str, after: str) -> bytes:
    entries: list[str] = []
    last = more = ""
    for key in objects.within(prefix, after):
        if len(entries) == PAGE:
            more = f"<NextContinuationToken>{escape(last)}</NextContinuationToken>"
            break
        place = objects.find(key)
        assert place is not None
        entries.append(_entry(key, place.length, place.when))
        last = key
    whole = f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>{more}{''.join(entries)}"
    return _xml(f"<ListBucketResult>{whole}</ListBucketResult>")


@lru_cache(maxsize=200_000)
def _entry(key: str, length: int, when: int) -> str:
    """A partition's batches are listed at each fetch, and are what they were."""
    at = datetime.fromtimestamp(when / 1000, UTC).isoformat(timespec="milliseconds")
    return f"<Contents><Key>{escape(key)}</Key><LastModified>{at}</LastModified><Size>{length}</Size></Contents>"


def _deleted(objects: Objects, body: bytes) -> bytes:
    names = [found.decode() for found in _KEY.findall(body)]
    for name in names:
        objects.delete(unescape(name, {"&quot;": '"', "&apos;": "'"}))
    told = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in names)
    return _xml(f"<DeleteResult>{told}</DeleteResult>")


def _xml(text: str) -> bytes:
    return _answer("200 OK", f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode(), **{"Content-Type": "text/xml"})


def _answer(status: str, body: bytes = b"", **headers: str) -> bytes:
    return _head(status, len(body), headers) + body


def _head(status: str, length: int, headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status}\r\n{lines}Content-Length: {length}\r\n\r\n".encode()


def _etag(place: Place) -> str:
    return f'"{place.tag}"'


class Connection(asyncio.Protocol):
    """One of the broker's connections: requests are answered in their order, each when it is whole.

    `failed` is told what keeps the journal from taking more. Then nothing is answered any more: what was not
    acknowledged never will be.
    """

    def __init__(self, objects: Objects, failed: Callable[[JournalError], None]) -> None:
        self._objects, self._failed = objects, failed
        self._read = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._read += data
        while (end := self._read.find(b"\r\n\r\n")) >= 0:
            first, *lines = self._read[:end].decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            behind = end + 4 + int(headers.get("content-length", 0))
            if len(self._read) < behind:
                return
            body = bytes(self._read[end + 4 : behind])
            del self._read[:behind]
            method, target, _ = first.split(" ")
            try:
                self._transport.write(answered(self._objects, method, target, headers, body))
            except JournalError as exc:
                self._failed(exc)
                return
