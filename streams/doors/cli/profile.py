"""`siltstone profile`."""

from __future__ import annotations

import click

from streams.doors.cli.client import (
    ask,
    console_for,
    json_option,
    partial_option,
    reference_date_option,
    timezone_option,
    url_option,
)


@click.command()
@click.argument("user")
@reference_date_option
@timezone_option
@partial_option
@url_option
@json_option
def profile(
    user: str, reference_date: str | None, timezone: str | None, partial: bool, url: str, as_json: bool
) -> None:
    """Show who USER is: pinned memories, home, job, people, preferences and coming appointments, with their dates.

    Each line is a sentence of the user. It is chosen by rules, without a model. With the worker's setting
    recall.profile_by_model, a model rewords the lines.
    """
    given = {"reference_date": reference_date, "timezone": timezone, "partial": "allow" if partial else None}
    asked = {"user_id": user, **{name: value for name, value in given.items() if value is not None}}
    answer = ask(url, "GET", "/v1/profile", params=asked)
    console = console_for(answer, as_json)
    if console is None:
        return
    if not answer["text"]:
        console.print(f"Nothing is known of who {user} is.", markup=False)
        return
    console.print(answer["text"], markup=False)
