"""`siltstone import`."""

from __future__ import annotations

from typing import Any, Final

import click

from streams.doors.cli.ingest import file_argument, take_in, taking_options
from streams.doors.importing.formats import Format

#: The formats by the names that users pass to `siltstone import`. `jsonl` is the output of `siltstone export`, or
#: messages in our own format.
FORMATS: Final = {"jsonl" if one is Format.SILTSTONE else one.value: one for one in Format}


@click.command("import")
@click.argument("name", type=click.Choice(list(FORMATS)), metavar=f"[{'|'.join(FORMATS)}]")
@file_argument
@taking_options
def import_file(name: str, **options: Any) -> None:
    """Import FILE (- for standard input) of the named format: chats, or memories from other services.

    This is `siltstone ingest` with a named format. Memories of mem0, of OpenMemory (its ZIP, or a file of it) and of
    `siltstone export` (jsonl) are kept as they are, with ids, times and metadata; chats become messages. In a chat
    between people, --speaker is the name of the user; all others count as the assistant.

    Importing the same file twice changes nothing.
    """
    take_in(FORMATS[name], **options)
