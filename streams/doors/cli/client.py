"""HTTP requests of the commands to a running worker, and the options that these commands share."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote

import click
import httpx
from rich.console import Console

from schemas.errors import ApiError, NoWorker
from schemas.places import Place
from streams.doors.cli import show
from streams.doors.http.error_detail import detail_of

#: The maximum value of a request's parameter `timeout`: the seconds that a worker waits before it answers.
LONGEST_WAIT: Final = 60.0
LOOK_AGAIN_SECONDS: Final = 0.1
#: The maximum number of seconds for a request, in addition to the seconds that the worker waits before it answers.
_ANSWER_SECONDS: Final = 30.0


def session_path(session_id: str, what: str) -> str:
    """Return the URL path of a resource of a session, such as `end` or `exchanges`.

    The session id is escaped, because it may be any text. Dots are escaped too, because the path segments `.` and
    `..` have a special meaning in a URL.

    >>> session_path("a/b", "end"), session_path("..", "end")
    ('/v1/sessions/a%2Fb/end', '/v1/sessions/%2E%2E/end')
    """
    return f"/v1/sessions/{quote(session_id, safe='').replace('.', '%2E')}/{what}"


def own_worker() -> str:
    """Return the URL of a worker that uses the settings of this machine. Raises `SettingsError`."""
    from schemas.settings import Settings  # imported here, so that other commands start faster

    http = Settings.load().http
    return f"http://{f'[{http.host}]' if ':' in http.host else http.host}:{http.port}"


url_option = click.option(
    "--url",
    envvar="SILTSTONE_URL",
    default=own_worker,
    show_default="http.host and http.port",
    help="The worker's address.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for programs.")
touch_option = click.option(
    "--touch/--no-touch",
    default=True,
    show_default=True,
    help="Count hits as accesses. Use --no-touch for evaluation and prefetch.",
)
short_term_option = click.option(
    "--short-term/--no-short-term",
    default=True,
    show_default=True,
    help="Include exchanges that are not memories, from the short-term windows of all sessions.",
)
reference_date_option = click.option(
    "--reference-date",
    metavar="DATE",
    help="Day or moment from which answers are dated, such as 2026-03-14.  [default: now]",
)
as_of_option = click.option(
    "--as-of",
    metavar="DATE",
    help="Only memories that held then, a day or a moment, including those that were superseded later.",
)
timezone_option = click.option(
    "--timezone",
    metavar="NAME",
    help="The user's time zone, such as Europe/Oslo.  [default: the worker's]",
)
partial_option = click.option(
    "--partial",
    is_flag=True,
    help="While a worker recovers the user's partition: answer from the data that it already has.",
)
filter_option = click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="FIELD:OPERATOR:VALUE",
    help="Condition, for example importance:gte:80; repeatable.",
)


def not_back(answer: dict[str, Any]) -> str:
    """Return a line about the data that a partial answer lacks, or an empty text if the answer is complete."""
    if not answer.get("partial"):
        return ""
    return f"Not all data is recovered yet: {'; '.join(map(coming_back, answer['behind']))}"


def console_for(answer: dict[str, Any], as_json: bool) -> Console | None:
    """Return the console for an answer, after printing a line about the data that the answer lacks.

    With `as_json`, print the answer, and return None: nothing else is to be printed.
    """
    if as_json:
        show.as_json(answer)
        return None
    console = show.console()
    if missing := not_back(answer):
        console.print(missing, markup=False)
    return console


def coming_back(behind: dict[str, Any]) -> str:
    """Return a text about the progress of a partition's recovery, which `behind` describes."""
    from streams.telemetry.recovery_progress import Behind  # imported here, so that commands start faster

    return str(Behind(**behind))


def bearer() -> dict[str, str]:
    """Return the header with the token in `SILTSTONE_TOKEN`, or no header if this variable is not set."""
    token = os.environ.get("SILTSTONE_TOKEN", "").strip()
    return {"Authorization": f"Bearer {token}"} if token else {}


def written(url: str, method: str, path: str, what: str, seconds: float, **options: Any) -> dict[str, Any]:
    """Send a write to the worker, wait until its effect can be read, and return the worker's answer.

    If the effect cannot be read within `seconds`, raise an `ApiError` whose text begins with `what`.
    """
    waited = min(seconds, LONGEST_WAIT)
    options["params"] = {**options.get("params", {}), "wait": "applied", "timeout": waited}
    answer: dict[str, Any] = ask(url, method, path, seconds=waited + _ANSWER_SECONDS, **options)
    if not answer["applied"]:
        until_applied(url, answer["token"], what, seconds - waited)
    return answer


def until_applied(url: str, token: str, what: str, seconds: float) -> None:
    """Wait until the write that a consistency token names can be read.

    While no worker owns the partition of the write, try again. If the write cannot be read within `seconds`, raise an
    `ApiError` whose text begins with `what`.
    """
    deadline = time.monotonic() + seconds
    while True:
        left = max(0.0, deadline - time.monotonic())
        waited = min(left, LONGEST_WAIT)
        try:
            asked = {"at_least": token, "timeout": waited}
            ask(url, "GET", "/v1/applied", params=asked, seconds=waited + _ANSWER_SECONDS)
            return
        except ApiError as exc:
            if exc.status != 503:
                raise
        if time.monotonic() >= deadline:
            where = Place.of_token(token)
            raise ApiError(f"{what}; it may still happen: check the worker's log and lag; the record is at {where}")
        time.sleep(min(LOOK_AGAIN_SECONDS, left))


def no_worker(url: str, exc: Exception) -> NoWorker:
    """Return the error to raise if no worker answers a request to `url`. `exc` is the exception of the request."""
    return NoWorker(
        f"no worker answers at {url} ({type(exc).__name__}): start one with `siltstone dev`, or pass --url"
    )


def ask(url: str, method: str, path: str, *, seconds: float = _ANSWER_SECONDS, **options: Any) -> Any:
    """Send a request to a worker, and return the JSON answer.

    Raises `NoWorker` if no worker answers within `seconds`, and `ApiError` if the worker answers with an error.
    """
    written_in = {"Content-Type": "application/json"} if method in ("POST", "PATCH") else {}
    options["headers"] = {**written_in, **bearer(), **options.get("headers", {})}
    try:
        response = httpx.request(method, url.rstrip("/") + path, timeout=seconds, trust_env=False, **options)
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        raise no_worker(url, exc) from exc
    if response.is_success:
        return response.json()
    raise _refused(url, response)


def lines(url: str, path: str, *, params: dict[str, Any], seconds: float = _ANSWER_SECONDS) -> Iterator[bytes]:
    """Send a request to a worker, and yield the lines of the answer as they arrive. Each line ends with its newline.

    Raises the same errors as `ask`.
    """
    address = url.rstrip("/") + path
    try:
        with httpx.stream(
            "GET", address, params=params, headers=bearer(), timeout=seconds, trust_env=False
        ) as response:
            if not response.is_success:
                response.read()
                raise _refused(url, response)
            rest = b""
            for part in response.iter_bytes():
                *whole, rest = (rest + part).split(b"\n")
                yield from (line + b"\n" for line in whole)
            if rest:
                yield rest
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        raise no_worker(url, exc) from exc


def _refused(url: str, response: httpx.Response) -> ApiError:
    return ApiError(f"{url} answered {response.status_code}: {detail_of(response.content)}", response.status_code)
