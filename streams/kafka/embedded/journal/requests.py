"""Answers the requests of the broker to its store: the part of S3's HTTP interface that Tansu uses."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from email.utils import formatdate
from typing import Final
from urllib.parse import parse_qs, unquote
from xml.sax.saxutils import unescape

from schemas.errors import JournalError
from streams.kafka.embedded.journal import BUCKET
from streams.kafka.embedded.journal.listing import Listings
from streams.kafka.embedded.journal.objects import Objects, Place

#: The host in the URL that the broker uses for its store.
LOOPBACK: Final = "127.0.0.1"
_KEY: Final = re.compile(rb"<Key>([^<]*)</Key>")


def answered(
    objects: Objects, listings: Listings, method: str, target: str, headers: Mapping[str, str], body: bytes
) -> bytes:
    """Return the response to one request. Raises `JournalError` if an object cannot be stored."""
    if "origin" in headers or headers.get("host", "").rpartition(":")[0] != LOOPBACK:
        return _answer("403 Forbidden")  # a web page sent the request, perhaps by DNS rebinding
    path, _, query = target.partition("?")
    key = unquote(path).removeprefix(f"/{BUCKET}").removeprefix("/")
    if method == "PUT" and key:
        return _put(objects, key, headers, body)
    if method in ("GET", "HEAD") and key:
        return _get(objects, key, headers, method == "HEAD")
    if method == "GET":  # S3 returns a thousand keys at a time; this store returns all
        entries = listings.within(parse_qs(query).get("prefix", [""])[0])
        return _xml(b"<ListBucketResult><IsTruncated>false</IsTruncated>%s</ListBucketResult>" % entries)
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


def _deleted(objects: Objects, body: bytes) -> bytes:
    names = [found.decode() for found in _KEY.findall(body)]
    for name in names:
        objects.delete(unescape(name, {"&quot;": '"', "&apos;": "'"}))
    told = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in names)
    return _xml(f"<DeleteResult>{told}</DeleteResult>".encode())


def _xml(text: bytes) -> bytes:
    return _answer("200 OK", b'<?xml version="1.0" encoding="UTF-8"?>' + text, **{"Content-Type": "text/xml"})


def _answer(status: str, body: bytes = b"", **headers: str) -> bytes:
    return _head(status, len(body), headers) + body


def _head(status: str, length: int, headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status}\r\n{lines}Content-Length: {length}\r\n\r\n".encode()


def _etag(place: Place) -> str:
    return f'"{place.tag}"'


class Connection(asyncio.Protocol):
    """One of the broker's connections. Requests are answered in their order, each when it is complete.

    If the journal cannot store an object, `failed` is called with the error. The request then gets no response, so an
    object that is not in the file is never acknowledged.
    """

    def __init__(self, objects: Objects, listings: Listings, failed: Callable[[JournalError], None]) -> None:
        self._objects, self._listings, self._failed = objects, listings, failed
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
                self._transport.write(answered(self._objects, self._listings, method, target, headers, body))
            except JournalError as exc:
                self._failed(exc)
                return
