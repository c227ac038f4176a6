"""The doctor's check of the HTTP port: is it free, or does a worker already listen on it?"""

from __future__ import annotations

import socket
from typing import Any

import httpx

from schemas.settings import HttpSettings, Settings
from streams.doctor.finding import Finding, failed, ok, warning
from streams.telemetry.recovery_progress import Behind

CHECK = "http"
#: Seconds to wait for a worker's answer. A very busy worker, or a worker on a busy machine, takes several seconds.
ANSWER_SECONDS = 10.0
SHOWN = 4
TAKEN = "stop the program on that port, or choose another port with http.port or --port"
SILENT = "check the worker's log and the load of the machine; if it is not a worker, " + TAKEN


async def check_http(settings: Settings) -> list[Finding]:
    """Check the HTTP port of the settings. If a worker already listens on the port, check whether it is ready."""
    http = settings.http
    address = f"{http.host}:{http.port}"
    if http.port == 0:
        return [ok(CHECK, f"{http.host}, on a free port that a worker chooses at its start")]
    host = f"[{http.host}]" if ":" in http.host else http.host
    try:
        async with httpx.AsyncClient(trust_env=False, timeout=ANSWER_SECONDS) as client:
            answer = await client.get(f"http://{host}:{http.port}/readyz")
    except httpx.ConnectError:
        return [_bindable(http, address)]
    except httpx.TimeoutException:
        silent = f"{address} is in use, but did not answer within {ANSWER_SECONDS:g} s"
        return [failed(CHECK, f"{silent}: a very busy worker, or another program", SILENT)]
    except httpx.HTTPError as exc:
        return [failed(CHECK, f"{address} is in use by a program that is not a worker ({type(exc).__name__})", TAKEN)]
    said = _said(answer)
    if said is None:
        return [failed(CHECK, f"{address} is in use by a program that is not a worker ({answer.status_code})", TAKEN)]
    if not said["ready"]:
        waiting = "; ".join(map(str, [*said["waiting_for"], *_coming_back(said)]))
        return [warning(CHECK, f"the worker at {address} is not ready: {waiting}", "wait, then look at its log")]
    return [ok(CHECK, f"a worker answers at {address} and is ready")]


def _coming_back(said: dict[str, Any]) -> list[Behind]:
    """Return the recoveries of partitions that will take longest, from the body of `/readyz`.

    The list is empty if the worker has an earlier version, whose answer has none or has other fields.
    """
    try:
        behind = [Behind(**one) for one in said.get("coming_back", [])]
    except TypeError:
        return []
    return sorted(behind, key=lambda one: -(one.eta_seconds or 0))[:SHOWN]


def _said(answer: httpx.Response) -> dict[str, Any] | None:
    """Return the body of the answer if it is a worker's answer to `/readyz`, or None if another program answered."""
    try:
        said = answer.json()
    except ValueError:
        return None
    mine = (
        isinstance(said, dict) and isinstance(said.get("ready"), bool) and isinstance(said.get("waiting_for"), list)
    )
    return said if mine else None


def _bindable(http: HttpSettings, address: str) -> Finding:
    """Try to bind the HTTP port in the same way as a worker, release it, and return the finding."""
    with socket.socket(socket.AF_INET6 if ":" in http.host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((http.host, http.port))
        except OSError as exc:
            return failed(CHECK, f"{address} cannot be bound: {exc.strerror}", TAKEN)
    return ok(CHECK, f"{address} is free")
