"""`siltstone token`."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta

import click

from schemas.errors import SettingsError
from schemas.settings import KafkaSettings, Settings
from schemas.times import iso, now_ms
from schemas.tokens import Scope, TokenRecord, issue
from streams.doors.cli import show
from streams.doors.cli.client import json_option
from streams.doors.cli.options import bootstrap_option, with_options

_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


class _Span(click.ParamType):
    name = "90d"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Convert a time span such as `90d` to milliseconds."""
        found = re.fullmatch(r"([1-9][0-9]{0,5})([mhd])", value)
        if found is None:
            self.fail(f"{value!r} is not a time span: write 30m, 12h or 90d", param, ctx)
        return int(timedelta(**{_UNITS[found[2]]: int(found[1])}).total_seconds() * 1000)


class _List(click.ParamType):
    name = "a,b"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        given = tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))
        if not given:
            self.fail("the list is empty", param, ctx)
        return given


@click.group()
def token() -> None:
    """Add, list and revoke tokens of the API. Clients need a token if access.tokens is set.

    A token lets its holder read, write or administer the memories of some users, or of all users.
    """


@token.command()
@click.option("--name", required=True, help="Purpose of the token, shown in lists.")
@click.option("--users", type=_List(), required=True, help="Ids of users, separated by commas, or '*' for all.")
@click.option("--scopes", type=_List(), required=True, help="Any of read, write, admin, separated by commas.")
@click.option("--expires", type=_Span(), help="Time until it expires, for example 30m, 12h or 90d.  [default: never]")
@bootstrap_option
@json_option
def add(
    name: str,
    users: tuple[str, ...],
    scopes: tuple[str, ...],
    expires: int | None,
    bootstrap_servers: str | None,
    as_json: bool,
) -> None:
    """Create a token, and show its secret, which is never shown again."""
    if unknown := sorted(set(scopes) - set(Scope)):
        raise click.UsageError(f"--scopes: there is no scope {', '.join(unknown)}: use read, write, admin")
    made, now = issue(), now_ms()
    try:
        record = TokenRecord(
            id=made.id,
            name=name,
            sha256=made.sha256,
            users=users,
            scopes=tuple(Scope(scope) for scope in scopes),
            created_at=now,
            expires_at=None if expires is None else now + expires,
        )
    except ValueError as exc:
        raise click.UsageError("--name and --users: must have 1 to 256 characters") from exc
    _write(_kafka(bootstrap_servers), record)
    if as_json:
        show.as_json({**_shown(record), "secret": made.secret})
        return
    click.echo(made.secret)
    click.echo(f"token {made.id} ({name}): store it now, it is not shown again", err=True)


@token.command("list")
@bootstrap_option
@json_option
def listed(bootstrap_servers: str | None, as_json: bool) -> None:
    """List all tokens, including revoked ones, without their secrets."""
    records = _all(_kafka(bootstrap_servers))
    if as_json:
        show.as_json({"tokens": [_shown(record) for record in records]})
        return
    if not records:
        click.echo("There are no tokens: siltstone token add creates one.")
        return
    now = now_ms()
    rows = [
        (one.id, show.plain(one.name), show.plain(",".join(one.users)), ",".join(one.scopes), _standing(one, now))
        for one in records
    ]
    show.console().print(show.table("tokens", ("id", "name", "users", "scopes", ""), rows))


@token.command()
@click.argument("token_id")
@bootstrap_option
def revoke(token_id: str, bootstrap_servers: str | None) -> None:
    """Revoke a token. Within a second, all workers refuse it."""
    kafka = _kafka(bootstrap_servers)
    found = next((one for one in _all(kafka) if one.id == token_id), None)
    if found is None:
        raise SettingsError([f"there is no token {token_id}: siltstone token list shows all"])
    if found.revoked_at is None:
        _write(kafka, found.model_copy(update={"revoked_at": now_ms()}))
    click.echo(f"token {found.id} ({found.name}) is revoked")


def _standing(record: TokenRecord, now: int) -> str:
    if record.revoked_at is not None:
        return f"revoked {iso(record.revoked_at)}"
    if record.expires_at is None:
        return "valid"
    return f"{'valid until' if record.valid(now) else 'expired'} {iso(record.expires_at)}"


def _shown(record: TokenRecord) -> dict[str, object]:
    return {
        "id": record.id,
        "name": record.name,
        "users": record.users,
        "scopes": record.scopes,
        "created_at": iso(record.created_at),
        "expires_at": None if record.expires_at is None else iso(record.expires_at),
        "revoked_at": None if record.revoked_at is None else iso(record.revoked_at),
    }


def _kafka(bootstrap_servers: str | None) -> KafkaSettings:
    return with_options(Settings.load(), None, bootstrap_servers, None).kafka


def _all(kafka: KafkaSettings) -> list[TokenRecord]:
    from streams.access.token_log import all_tokens  # imported here, because it imports the Kafka client

    return asyncio.run(all_tokens(kafka))


def _write(kafka: KafkaSettings, record: TokenRecord) -> None:
    from streams.access.token_log import write_token

    asyncio.run(write_token(kafka, record))
