"""`siltstone mcp`."""

from __future__ import annotations

import click

from streams.doors.cli.client import bearer, url_option
from streams.doors.cli.process import run


@click.command()
@url_option
def mcp(url: str) -> None:
    """Serve MCP on standard input and output, for an assistant that starts its servers as commands.

    A running worker answers the requests, with its tools and with the rights of the token in SILTSTONE_TOKEN. The
    command ends when its input ends.
    """
    from streams.doors.cli.mcp_proxy import serve  # half a second of imports, only for this command

    run(serve(url.rstrip("/"), bearer()))
