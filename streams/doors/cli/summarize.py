"""`siltstone summarize`."""

from __future__ import annotations

import time
import uuid
from typing import Any

import click
from rich.console import Console

from schemas.errors import ApiError
from streams.doors.cli import show
from streams.doors.cli.client import ask, json_option, url_option
from streams.doors.cli.markdown import shown
from streams.doors.cli.options import DAY
from tables.summaries.day_files import written_by

PATH = "/v1/summaries"
LOOK_AGAIN_SECONDS = 0.2


@click.command()
@click.option("--user", required=True, help="Id of the user.")
@click.option("--date", "day", type=DAY, help="Day to sum up.  [default: that of the user's newest message]")
@click.option(
    "--timeout",
    "seconds",
    type=click.FloatRange(min=0),
    default=120.0,
    show_default=True,
    help="Seconds to wait for the summary.",
)
@url_option
@json_option
def summarize(user: str, day: str | None, seconds: float, url: str, as_json: bool) -> None:
    """Sum up a user's day now, and show the summary.

    The summary covers the messages of that day that are still in the windows. It is added to the day's file, which
    `siltstone summaries` shows.
    """
    asked = ask(url, "POST", PATH, json={"user_id": user, "date": day})
    with Console(stderr=True).status(f"Summing up {asked['messages']} messages of {asked['date']} …"):
        markdown = _when_written(url, asked, seconds)
    if as_json:
        told = {name: asked[name] for name in ("run_id", "user_id", "date", "messages")}
        show.as_json({**told, "markdown": markdown})
    else:
        show.console().print(shown(markdown))


def _when_written(url: str, asked: dict[str, Any], seconds: float) -> str:
    """Wait for the requested summary, and return its Markdown. `asked` is the worker's answer to the request.

    Raises `ApiError` if the summary fails or takes more than `seconds`.
    """
    run_id, user, day = asked["run_id"], asked["user_id"], asked["date"]
    deadline = time.monotonic() + seconds
    while True:
        answer = ask(url, "GET", PATH, params={"user_id": user, "from": day, "to": day})
        if any(run_id in one["runs"] for one in answer["days"]):
            file = ask(url, "GET", f"{PATH}/{day}", params={"user_id": user})
            return written_by(uuid.UUID(run_id), file["markdown"]) or file["markdown"]
        if any(run_id == one["run_id"] for one in answer["waiting"]):
            raise ApiError(
                f"the summary of {day} failed, and is tried again with the next summary of {user}: "
                "the worker's log has the error of the model or the disk"
            )
        if time.monotonic() >= deadline:
            raise ApiError(
                f"the summary of {day} was not written within {seconds:g} s; it may still come: check the lag of "
                f"{asked['topic']} in {url.rstrip('/')}/metrics and the worker's log, then run "
                f"`siltstone summaries --user {user} {day}`"
            )
        time.sleep(LOOK_AGAIN_SECONDS)
