"""`siltstone reembed`."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import click
from pydantic import ValidationError

from schemas.errors import ApiError, NoWorker, SettingsError, SiltstoneError
from schemas.settings import OF_THE_MODEL, EmbeddingSettings, InputTypeName, Settings, settings_of_the_model
from streams.doctor.data import numbered
from streams.doors.cli import show
from streams.doors.cli.client import ask, json_option, url_option
from streams.doors.cli.options import data_option
from streams.doors.cli.process import run
from streams.doors.cli.reembed_files import abandon_files, reembed_files
from streams.doors.cli.shard_files import RowsBar
from streams.memory.reembedding import Phase
from streams.models.embedding.choice import embedder_of
from tables.paths import shard_folders

BACKENDS = click.Choice([*OF_THE_MODEL])
NAMES = click.Choice(get_args(InputTypeName))
PATH = "/v1/reembed"
UNDER_WAY = frozenset({Phase.LOADING, Phase.EMBEDDING, Phase.SWITCHING})
LOOK_AGAIN_SECONDS = 0.3
GO_ON = "finished work is kept: run the same command again to continue, or with --abandon to drop it"


@click.command()
@click.option("--backend", type=BACKENDS, help="Backend of the new model.  [default: embedding.backend]")
@click.option("--model", help="Name or folder of the new model.  [default: embedding.model, or the backend's own]")
@click.option(
    "--dimensions",
    type=click.IntRange(1, 65_536),
    help="Dimensions to request from a service that can shorten its vectors.",
)
@click.option("--query-prefix", help="Text before each question.  [default: the model's own prompt]")
@click.option("--document-prefix", help="Text before each memory.  [default: the model's own prompt]")
@click.option("--query-input-type", help="A service's word for questions, such as query.")
@click.option("--document-input-type", help="A service's word for memories, such as document.")
@click.option("--input-type-name", type=NAMES, help="The parameter with that word.  [default: input_type]")
@click.option("--abandon", is_flag=True, help="Stop, and drop the unfinished vectors.")
@data_option
@url_option
@json_option
def reembed(
    backend: str | None,
    model: str | None,
    abandon: bool,
    data: Path | None,
    url: str,
    as_json: bool,
    **of_the_model: Any,
) -> None:
    """Embed all memories with another embedding model, and switch to it.

    The running worker does this, and still answers requests. If no worker answers, the command works on the shards'
    files. With --data, it works on the files in that directory. Without --backend and --model, the settings name the
    model. Ctrl-C stops the command without loss, and the same command continues the work.
    """
    settings = Settings.load()
    files = data or settings.data_dir
    by_worker = data is None and _answers(url, files)
    if abandon:
        dropped = ask(url, "DELETE", PATH, params={"abandon": True})["dropped"] if by_worker else abandon_files(files)
        if as_json:
            show.as_json({"dropped": dropped})
        else:
            click.echo(
                f"The unfinished vectors of {numbered(dropped)} were dropped."
                if dropped
                else "There were no unfinished vectors."
            )
        return
    wanted = _wanted(settings.embedding, backend, model, of_the_model)
    if by_worker:
        done = _by_worker(url, wanted)
    else:
        embedder = embedder_of(settings.model_copy(update={"embedding": wanted, "data_dir": files}))
        try:
            done = run(reembed_files(files, embedder, settings.embedding))
        except KeyboardInterrupt:
            raise SiltstoneError(f"stopped; {GO_ON}") from None
    if as_json:
        show.as_json(done)
    else:
        _tell(done)


def _answers(url: str, data: Path) -> bool:
    """Return True if a worker answers, and False if none answers, but the data directory has shards.

    Raises `NoWorker` if no worker answers and there are no shards.
    """
    try:
        ask(url, "GET", PATH)
    except NoWorker:
        if not shard_folders(data):
            raise
        return False
    return True


def _wanted(
    settings: EmbeddingSettings, backend: str | None, model: str | None, of_the_model: Mapping[str, Any]
) -> EmbeddingSettings:
    """Return the embedding settings, with the command's options in place of their values.

    If the options name another model, the dimensions, prefixes and input types in the settings are not used for it.
    Raises `UsageError` if the backend has no use for one of the options.
    """
    given = {"model": model, **of_the_model}
    _refuse_unused(backend or settings.backend, [name for name, value in given.items() if value is not None])
    same_backend = backend in (None, settings.backend)
    kept = settings.model if same_backend else ""
    same = same_backend and model in (None, settings.model)
    try:
        return EmbeddingSettings.model_validate(
            {
                **{name: value for name, value in settings if same or name not in of_the_model},
                **{name: value for name, value in of_the_model.items() if value is not None},
                "backend": backend or settings.backend,
                "model": kept if model is None else model,
            }
        )
    except ValidationError as exc:
        raise SettingsError([f"embedding.{error['loc'][0]}: {error['msg']}" for error in exc.errors()]) from None


def _refuse_unused(backend: str, given: Sequence[str]) -> None:
    used = settings_of_the_model(backend)
    unused = ", ".join(f"--{name.replace('_', '-')}" for name in given if name not in used)
    if unused and backend == "auto":
        raise click.UsageError(f"embedding.backend is auto: name the backend with --backend beside {unused}")
    if unused:
        raise click.UsageError(f"the backend {backend} has no use for {unused}: leave it out, or name another one")


def requested(wanted: EmbeddingSettings) -> dict[str, Any]:
    """Return the body of the request.

    What is not set is left out, because a worker of an older version refuses fields that it does not know.
    """
    named = {"backend": wanted.backend, "model": wanted.model}
    return named | wanted.model_dump(include=set(OF_THE_MODEL["openai"]), exclude_defaults=True)


def _by_worker(url: str, wanted: EmbeddingSettings) -> dict[str, Any]:
    """Make the worker embed all memories with the wanted model, wait for the end, and return the worker's answer.

    Raises `ApiError` if the re-embedding fails or is stopped.
    """
    state: dict[str, Any] = ask(url, "POST", PATH, json=requested(wanted))
    try:
        with RowsBar() as bar:
            tell = bar.of("embedding")
            while state["phase"] in UNDER_WAY:
                if state["total"]:
                    over = "switching" if state["phase"] == Phase.SWITCHING else ""
                    tell(state["done"], state["total"], state["waiting_for"] or over)
                time.sleep(LOOK_AGAIN_SECONDS)
                state = ask(url, "GET", PATH)
    except KeyboardInterrupt:
        ask(url, "DELETE", PATH)
        raise ApiError(f"stopped; {GO_ON}") from None
    if state["phase"] != Phase.DONE:
        why = state["error"] or "it was stopped, or the worker was restarted"
        raise ApiError(f"{why}; {GO_ON}" if state["total"] else why)
    return state


def _tell(done: dict[str, Any]) -> None:
    model = f"{done['model']} ({done['dimension']} dimensions)"
    if done["switched"]:
        click.echo(f"{done['total']:,} memories in {done['switched']} shards now have vectors of {model}.")
    else:
        click.echo(f"The shards already have vectors of {model}.")
    if done["settings"]:
        click.echo("A worker needs these settings at its next start:")
    for key, value in done["settings"].items():
        click.echo(f"  {key}: {_shown(key, value)}")


def _shown(key: str, value: Any) -> str:
    """Return a value for `config.yaml`. Prefixes are quoted, because white space at their ends counts."""
    if value is None:
        return "(leave it out)"
    return json.dumps(value, ensure_ascii=False) if key.endswith("_prefix") else str(value)
