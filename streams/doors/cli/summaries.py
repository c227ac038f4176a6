"""`siltstone summaries`."""

from __future__ import annotations

import click

from streams.doors.cli import show
from streams.doors.cli.client import ask, json_option, url_option
from streams.doors.cli.markdown import shown
from streams.doors.cli.options import DAY


@click.command()
@click.argument("day", type=DAY, required=False, metavar="[DATE]")
@click.option("--user", required=True, help="Id of the user.")
@click.option("--from", "first", type=DAY, help="First day.")
@click.option("--to", "last", type=DAY, help="Last day.")
@url_option
@json_option
def summaries(day: str | None, user: str, first: str | None, last: str | None, url: str, as_json: bool) -> None:
    """Show a user's summary of DATE. Without DATE, show the days that have a summary.

    Days begin at midnight in the time zone of agents.summary.timezone.
    """
    if day and (first or last):
        raise click.UsageError("Pass DATE, or --from and --to.")
    if day:
        file = ask(url, "GET", f"/v1/summaries/{day}", params={"user_id": user})
        if as_json:
            show.as_json(file)
        else:
            show.console().print(shown(file["markdown"]))
        return
    span = {name: given for name, given in (("from", first), ("to", last)) if given}
    answer = ask(url, "GET", "/v1/summaries", params={"user_id": user, **span})
    if as_json:
        show.as_json(answer)
        return
    console = show.console()
    if answer["days"]:
        rows = [(one["date"], len(one["runs"])) for one in answer["days"]]
        console.print(show.table(f"Summaries of {show.plain(user)}", ("day", ">runs"), rows))
    else:
        console.print("There are no such summaries. `siltstone summarize` writes one now.", markup=False)
    if answer["waiting"]:
        days = ", ".join(sorted({one["date"] for one in answer["waiting"]}))
        console.print(
            f"Not written yet: {days}. The worker tries again with the user's next summary; its log says why."
        )
