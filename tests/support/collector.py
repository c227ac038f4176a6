"""A collector of spans on loopback: OTLP over HTTP, with real protobuf."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.ports import free_port


class Collector:
    """What came: `spans` by name, and the headers and the path of the last request."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.spans: list[str] = []
        self.resource: dict[str, str] = {}
        self.headers: dict[str, str] = {}
        self.path = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        self.path, self.headers = path, headers
        for of_resource in request.resource_spans:
            self.resource = {one.key: one.value.string_value for one in of_resource.resource.attributes}
            self.spans += [span.name for scope in of_resource.scope_spans for span in scope.spans]


@contextmanager
def collecting(port: int | None = None) -> Iterator[Collector]:
    """It listens until the end of the block."""
    collector = Collector(port or free_port())

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            collector.take(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the standard library's
            """Nothing of it is said."""

    with ThreadingHTTPServer(("127.0.0.1", collector.port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
