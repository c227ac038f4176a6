"""`siltstone context`."""

from __future__ import annotations

import click

from streams.doors.cli.client import (
    as_of_option,
    ask,
    console_for,
    json_option,
    partial_option,
    reference_date_option,
    short_term_option,
    timezone_option,
    touch_option,
    url_option,
)


@click.command()
@click.argument("query", default="")
@click.option("--user", required=True, help="Id of the user.")
@click.option("--session", required=True, help="Id of the session.")
@click.option(
    "--max-tokens",
    type=click.IntRange(200, 1_000_000),
    help="Maximum length of the prompt; the memories that match best fill it.  [default: no maximum, 3 memories]",
)
@click.option("--memories", type=click.IntRange(0, 1000), help="Maximum number of memories.")
@click.option("--profile", is_flag=True, help="Begin with who the user is, as `siltstone profile` shows it.")
@short_term_option
@touch_option
@reference_date_option
@as_of_option
@timezone_option
@partial_option
@url_option
@json_option
def context(
    query: str,
    user: str,
    session: str,
    max_tokens: int | None,
    memories: int | None,
    profile: bool,
    short_term: bool,
    touch: bool,
    reference_date: str | None,
    as_of: str | None,
    timezone: str | None,
    partial: bool,
    url: str,
    as_json: bool,
) -> None:
    """Show the newest exchanges, the notes and the best memories as one prompt text for an assistant.

    Without QUERY, the user's last message is the query.
    """
    given = {
        "max_tokens": max_tokens,
        "memories": memories,
        "reference_date": reference_date,
        "timezone": timezone,
        "as_of": as_of,
    }
    asked = {
        "user_id": user,
        "session_id": session,
        "q": query,
        "touch": touch,
        "include_short_term": short_term,
        "profile": profile,
        **{name: value for name, value in given.items() if value is not None},
    }
    if partial:
        asked["partial"] = "allow"
    answer = ask(url, "GET", "/v1/context", params=asked)
    console = console_for(answer, as_json)
    if console is None:
        return
    if not answer["prompt"]:
        console.print("Nothing is known about this session, and no memory of this user answers.")
        return
    console.print(answer["prompt"], markup=False)
