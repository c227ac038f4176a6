"""The HTTP server of a worker."""

from __future__ import annotations

import socket
from functools import partial

from fastapi import FastAPI
from faust.contrib.asgi import AsgiService

from schemas.errors import SiltstoneError
from schemas.settings import HttpSettings
from streams.doors.http.header_timeout import HEAD_SECONDS, PatientForHeads


class ApiServer:
    """Serves one API at the host and port of the settings. Port 0 means any free port."""

    def __init__(self, settings: HttpSettings, head_seconds: float = HEAD_SECONDS) -> None:
        self._settings, self.port, self._head_seconds = settings, settings.port, head_seconds
        self._listener: socket.socket | None = None
        self._service: AsgiService | None = None

    @property
    def url(self) -> str:
        """The URL at which other workers can reach this worker."""
        host = self._settings.host
        return self._settings.advertised_url or f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    async def start(self, api: FastAPI) -> None:
        """Listen at the host and port, and serve the API. Raises `SiltstoneError` if the address cannot be used."""
        host, port = self._settings.host, self._settings.port
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # The head and the body of a response are sent separately. Without TCP_NODELAY, the body would wait until the
        # client acknowledges the head, which may take 40 ms. Connections inherit the option from the listener. It
        # must be set here: uvicorn treats a given descriptor as a Unix socket, and does not set the option itself.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            listener.bind((host, port))
            # With SO_REUSEADDR, two sockets can bind to one address while neither listens, but then only one of them
            # can listen. Requests that arrive before uvicorn runs wait in the listener's queue.
            listener.listen()
        except OSError as exc:
            listener.close()
            raise SiltstoneError(
                f"cannot serve HTTP at {host}:{port}: {exc.strerror}; choose another with http.port or --port"
            ) from exc
        self.port = listener.getsockname()[1]
        self._listener = listener  # the listener must stay open, because uvicorn gets only its descriptor
        self._service = AsgiService(
            api,
            host=host,
            port=self.port,
            uvicorn_options={
                "fd": listener.fileno(),
                "http": partial(PatientForHeads, head_seconds=self._head_seconds),
                "ws": "none",
                "log_level": None,  # otherwise uvicorn would set the log level of the whole process
                "server_header": False,
            },
        )
        await self._service.start()

    async def stop(self) -> None:
        """Answer the requests that were received, then stop."""
        try:
            if self._service is not None:
                await self._service.stop()
        finally:
            if self._listener is not None:
                self._listener.close()
