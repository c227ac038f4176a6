"""An S3 server on loopback (moto's), and a door before it that can be slow, busy, full, closed or gone.

with s3_server() as address, Door(address) as door:
    for name, value in environment(door.address).items(): …
    door.answers = Answers.FULL
"""

from __future__ import annotations

import contextlib
import enum
import http.client
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.support.untouched import lasting

BUCKET = "checkpoints"
SECRET = "wJalrXUtnFEMI"


@contextmanager
def s3_server(bucket: str = BUCKET) -> Iterator[str]:
    """Its address, `127.0.0.1:port`; it has one bucket, and ends with the block."""
    with lasting():  # what is imported makes loggers with levels of their own
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
    app, one_at_a_time = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def answer(environ: Any, start_response: Any) -> list[bytes]:
        # moto looks whether a key is there, and then puts it; S3 does both in one step.
        with one_at_a_time:
            return list(app(environ, start_response))

    server = make_server("127.0.0.1", 0, answer, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    address = f"127.0.0.1:{server.server_port}"
    try:
        with pytest.MonkeyPatch.context() as patch:
            # Larger values would be in files that are open for as long as their buckets are there.
            patch.setattr("moto.s3.models.get_s3_default_key_buffer_size", lambda: 1 << 30)
            make_bucket(address, bucket)
            yield address
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def make_bucket(address: str, bucket: str) -> None:
    with urlopen(Request(f"http://{address}/{bucket}", method="PUT")):
        pass


def environment(address: str) -> dict[str, str]:
    """What a client's environment needs in order to use the server."""
    return {
        "AWS_ENDPOINT_URL": f"http://{address}",
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
    }


class Answers(enum.Enum):
    """What a door does with what comes."""

    AS_THEY_ARE = 200
    CLOSED = 403
    BUSY = 503
    FULL = 507
    NONE = 0  # the connection ends


class Door:
    """A server that hands all requests on to another, or not. `requests` has (method, path, bytes) of each."""

    def __init__(self, behind: str) -> None:
        self.behind = behind
        self.answers = Answers.AS_THEY_ARE
        #: Methods that `answers` is for; the others are handed on.
        self.methods = frozenset({"GET", "PUT", "HEAD", "POST", "DELETE"})
        #: Requests that are still handed on before `answers` begins.
        self.first = 0
        self.seconds = 0.0
        self.requests: list[tuple[str, str, int]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        #: From clients that keep them for their next request.
        self.connections: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Door:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        for connection in self.connections.copy():
            with contextlib.suppress(OSError):  # the client has closed it
                connection.shutdown(socket.SHUT_RDWR)
        self._server.server_close()  # which waits for the threads of the connections

    def refusal(self, method: str, path: str, length: int) -> Answers | None:
        self.requests.append((method, path, length))
        if self.answers is Answers.AS_THEY_ARE or method not in self.methods:
            return None
        if self.first > 0:
            self.first -= 1
            return None
        return self.answers


def _handler(door: Door) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            door.connections.add(self.connection)

        def finish(self) -> None:
            door.connections.discard(self.connection)
            super().finish()

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except ConnectionError:
                self.close_connection = True

        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            refusal = door.refusal(self.command, self.path, len(body))
            time.sleep(door.seconds)
            if refusal is Answers.NONE:
                self.close_connection = True
                return
            if refusal is not None:
                self._answer(refusal.value, [], b"<Error><Code>Refused</Code><Key>%s</Key></Error>" % SECRET.encode())
                return
            behind = http.client.HTTPConnection(door.behind)
            try:
                behind.request(self.command, self.path, body, dict(self.headers))
                answer = behind.getresponse()
                headers = [
                    (name, value)
                    for name, value in answer.getheaders()
                    if name.lower() not in ("transfer-encoding", "connection", "date", "server")
                ]
                self._answer(answer.status, headers, answer.read())
            finally:
                behind.close()

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _pass  # noqa: N815 - http.server names them so

        def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            if not any(name.lower() == "content-length" for name, _ in headers):
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Tests say what they need to."""

    return Handler
