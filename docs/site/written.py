"""Write docs/api.md from the OpenAPI and docs/cli.md from the commands: `make pages`.

A test compares both files with what this program writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import tempfile
from collections.abc import Iterator, Mapping
from copy import copy
from pathlib import Path
from typing import Any, Final

import click

from schemas.settings import Settings
from streams.app import Siltstone
from streams.doors.application import build
from streams.doors.cli import COMMANDS, cli

DOCS: Final = Path(__file__).resolve().parents[1]
WIDTH: Final = 100

#: Tag → title and opening, in the order of the page.
GROUPS: Final = {
    "conversations": ("Conversations", "Messages in, and the short-term window."),
    "memories": ("Memories", "Long-term memories: search, list, change, forget."),
    "summaries": ("Daily summaries", "Summaries of a user's days."),
    "archive": ("Archive", "Archived memories, and cleanup."),
    "statistics": ("Statistics", "Counts over all users, and the analysts' copy."),
    "operations": ("Operations", "Health, metrics, checkpoints, another embedding model."),
    "mem0": ("mem0", "The wire format of mem0's client: [Migrating from mem0](migrating-from-mem0.md)."),
}

API: Final = """\
# HTTP API

For developers who call the API without the [Python client](../client/README.md), and look up a route, its parameters
and its fields. `make pages` writes this page from the API's OpenAPI document.

| question | answer |
|---|---|
| How do I use these together? | [Use from an app](use.md) |
| Where can I try them? | `http://127.0.0.1:8000/docs` of a running worker |
| What does an error look like? | [Errors](#errors) |
"""
#: Parameters that many routes share: they are described once.
SHARED: Final = ("wait", "timeout", "at_least", "Siltstone-At-Least", "partial")
WAITING: Final = """\
## Waiting

Parameters of routes that can wait for writes, or answer while a partition is being recovered
([Reading what one has written](use.md#reading-what-one-has-written)):

| name | in | type | |
|---|---|---|---|
"""
ERRORS: Final = """\
## Errors

Every error is `{"detail": "…"}`, one line. These may come from any route:

| status | |
|---|---|
"""
CLI: Final = """\
# Commands

For operators and developers who look up a command and its options. `make pages` writes this page from the commands.

| question | answer |
|---|---|
| How do I start? | [Run](run.md) |
| How do I see this in a terminal? | `siltstone search --help` |
| What does the exit code mean? | `0`: success; `1`: failure, one line says why; `2`: wrong usage |
| Where do settings come from? | [Settings](reference.md#settings) |
"""


def openapi() -> dict[str, Any]:
    """The OpenAPI document of a worker that does not run, with default settings."""

    async def built() -> dict[str, Any]:
        worker = Siltstone(Settings())
        return build(worker.service, worker.forwarding).openapi()

    return asyncio.run(built())


def api_page(document: Mapping[str, Any]) -> str:
    """The page of the routes, by group."""
    every = [
        (operation["tags"][0], method.upper(), path, operation)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]
    assert {group for group, *_ in every} == GROUPS.keys(), "each group of routes has a section, and a route"
    common = set.intersection(*(set(operation["responses"]) - {"200", "202"} for *_, operation in every))
    parts = [API]
    shown = _Shown(document, common)
    for tag, (title, opening) in GROUPS.items():
        parts.append(f"## {title}\n\n{opening}\n")
        of_tag = sorted((path, method, operation) for group, method, path, operation in every if group == tag)
        parts += [shown.route(method, path, operation) for path, method, operation in of_tag]
    statuses = every[0][-1]["responses"]
    rows = "".join(f"| {status} | {statuses[status]['description']} |\n" for status in sorted(common))
    return "\n".join([*parts, WAITING + "".join(shown.waiting.values()), ERRORS + rows])


class _Shown:
    """The sections of routes; `waiting` collects the rows of the parameters that many routes share."""

    def __init__(self, document: Mapping[str, Any], common: set[str]) -> None:
        self._document, self._common = document, common
        self.waiting = dict[str, str]()

    def route(self, method: str, path: str, operation: Mapping[str, Any]) -> str:
        """One route: what it does, its parameters and the fields of its body, its answers."""
        mark = " (mem0)" if "mem0" in operation["tags"] else ""
        lines = [f"### {method} {path}{mark}", "", operation.get("description", operation["summary"]), ""]
        rows, shared = list[str](), list[str]()
        for one in operation.get("parameters", ()):
            row = self._row(one["name"], one["in"], one["schema"], one.get("description", ""), one.get("required"))
            if one["name"] in SHARED:
                self.waiting[one["name"]] = row
                shared.append(f"`{one['name']}`")
            else:
                rows.append(row)
        for name, field, required in _fields(operation, self._document):
            rows.append(self._row(name, "body", field, field.get("description", ""), required))
        if rows:
            lines += ["| name | in | type | |", "|---|---|---|---|", *(row.rstrip() for row in rows), ""]
        if shared:
            lines += [f"And {', '.join(shared)}: [waiting](#waiting).", ""]
        answers = operation["responses"].items()
        good = ", ".join(f"{status} {_answer(one)}".strip() for status, one in answers if status < "3")
        others = sorted(set(operation["responses"]) - self._common - {"200", "202"})
        lines += [f"Answers {good}" + (f"; also {', '.join(others)}" if others else "") + ".", ""]
        return "\n".join(lines)

    def _row(self, name: str, where: str, schema: Mapping[str, Any], description: str, required: bool | None) -> str:
        needed = ", required" if required and where != "path" else ""
        kind = _type(schema, self._document)
        return f"| `{name}` | {where}{needed} | {kind} | {_told(schema, description)} |\n"


def _fields(operation: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[tuple[str, Any, bool]]:
    """The fields of the body: name, schema, whether it is required."""
    for schema in _bodies(operation):
        model = _resolved(schema, document)
        for name, field in model.get("properties", {}).items():
            yield name, field, name in model.get("required", ())


def _bodies(operation: Mapping[str, Any]) -> list[Any]:
    """The first alternative of the body: a list is documented by its element."""
    content = operation.get("requestBody", {}).get("content", {}).values()
    return [(one["schema"].get("oneOf") or one["schema"].get("anyOf") or [one["schema"]])[0] for one in content]


def _resolved(schema: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    return document["components"]["schemas"][name] if name else schema


def _type(schema: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    if alternatives := schema.get("anyOf") or schema.get("oneOf"):
        names = [_type(one, document) for one in alternatives]
        return " or ".join(dict.fromkeys(name for name in names if name != "null"))
    if "$ref" in schema:
        return _type(_resolved(schema, document), document)
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    kind = schema.get("format") or schema.get("type") or "any"
    if kind == "array":
        return f"list of {_type(schema.get('items', {}), document)}"
    low, high = schema.get("minimum", schema.get("minLength")), schema.get("maximum", schema.get("maxLength"))
    if high is None:
        return f"{kind}"
    return f"{kind}, {low or 0:g}–{high:g}" if kind != "string" else f"string, at most {high}"


def _told(schema: Mapping[str, Any], description: str) -> str:
    default = schema.get("default")
    value = f"Default: `{json.dumps(default, ensure_ascii=False)}`." if default not in (None, [], "") else ""
    sentence = description[:1].upper() + description[1:]
    told = " ".join(filter(None, (sentence.rstrip(".") + "." if sentence else "", value)))
    return told.replace("\n", " ").replace("|", "\\|")


def _answer(response: Mapping[str, Any]) -> str:
    """The type of the body."""
    for kind, content in response.get("content", {}).items():
        name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
        return f"`{name}`" if name else "" if kind == "application/json" else kind
    return ""


def cli_page() -> str:
    """The page of the commands, in the order of `siltstone --help`."""
    root = click.Context(cli, info_name="siltstone", max_content_width=WIDTH, terminal_width=WIDTH)
    return "\n".join(
        [CLI, *(part for name in COMMANDS for part in _command(cli.get_command(root, name), name, root))]
    )


def _command(command: click.Command | None, name: str, parent: click.Context) -> Iterator[str]:
    assert command is not None
    command = copy(command)
    command.add_help_option = False  # each has it, and click keeps the names that its first caller gave it
    context = click.Context(command, info_name=name, parent=parent, max_content_width=WIDTH, terminal_width=WIDTH)
    level = "##" if parent.parent is None else "###"
    yield f"{level} {context.command_path}\n\n```text\n{command.get_help(context).rstrip()}\n```\n"
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            yield from _command(command.get_command(context, inner), inner, context)


def pages() -> dict[Path, str]:
    """Each page's path and text."""
    return {DOCS / "api.md": api_page(openapi()), DOCS / "cli.md": cli_page()}


def main() -> None:
    """Write them. Neither a `config.yaml` of the present folder nor the environment changes them."""
    logging.disable(logging.CRITICAL)
    for name in [name for name in os.environ if name.startswith("SILTSTONE_")]:
        del os.environ[name]
    with tempfile.TemporaryDirectory() as elsewhere, contextlib.chdir(elsewhere):
        written = pages()
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
