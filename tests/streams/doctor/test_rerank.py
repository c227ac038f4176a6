"""The doctor's check of the reranker: off, sound, slow, and broken, without its key."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.settings import Settings
from streams.doctor import Outcome, ReadSettings, examine
from streams.doctor.rerank import check_rerank
from tests.streams.models.reranking.cross_encoders import made
from tests.support.openai_server import Answer, OpenAIServer
from tests.support.ports import free_port

OK, WARNING, FAILED = Outcome.OK, Outcome.WARNING, Outcome.FAILED
KEY = "sk-secret-0123456789"


async def found(**rerank: object) -> tuple[Outcome, str, str]:
    (finding,) = await check_rerank(Settings.load(rerank=rerank))
    assert finding.check == "rerank"
    assert KEY not in finding.what + finding.todo
    return finding.outcome, finding.what, finding.todo


def service(server: OpenAIServer, **fields: object) -> dict[str, object]:
    return {"backend": "service", "model": "judge-1", "api_key": KEY, "base_url": server.base_url, **fields}


async def test_it_is_off_by_default() -> None:
    assert await found() == (OK, "off: rerank.model is empty", "")


async def test_a_service_without_a_model_is_a_warning(server: OpenAIServer) -> None:
    assert await found(**service(server, model="")) == (
        WARNING,
        "off, although a service is set: rerank.model is empty",
        "set rerank.model",
    )
    assert not server.received


async def test_a_service_is_asked_once_as_in_a_search(server: OpenAIServer) -> None:
    """With as many texts, all of them invented."""
    outcome, what, _ = await found(**service(server, candidates=7, timeout_seconds=8))
    assert (outcome, what.rpartition(" in ")[0]) == (OK, "judge-1 scores 7 texts")
    (request,) = server.received
    assert (request.key, len(request.documents)) == (KEY, 7)
    assert set(request.documents) == {"Ann lives in Oslo.", "The train was late."}


async def test_a_service_that_searches_would_not_wait_for_is_a_warning(server: OpenAIServer) -> None:
    server.script(Answer(delay=0.3))
    outcome, what, todo = await found(**service(server, timeout_seconds=0.1))
    assert outcome is WARNING
    assert "a search waits 0.1 s: most would not be reranked" in what
    assert todo.startswith("lower rerank.candidates")


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (Answer(status=401), "(AuthenticationError, 401): correct the key"),
        (Answer(status=404), "(NotFoundError, 404): correct rerank.base_url or rerank.model"),
        (Answer(body=b"{}"), "its answer is not a list of scores"),
    ],
)
async def test_a_service_that_fails_says_how(server: OpenAIServer, answer: Answer, what: str) -> None:
    server.answering = lambda _: answer
    outcome, told, _ = await found(**service(server))
    assert outcome is FAILED
    assert told.startswith(f"judge-1 at {server.origin} does not rerank")
    assert what in told


async def test_a_wrong_address_is_a_failure(server: OpenAIServer) -> None:
    """No server answers there."""
    outcome, what, _ = await found(**service(server, base_url=f"http://127.0.0.1:{free_port()}/v1"))
    assert outcome is FAILED
    assert "(APIConnectionError): start the service, or correct its URL" in what


def write(text: str) -> None:
    Path("config.yaml").write_text(text, encoding="utf-8")


async def test_a_missing_key_is_a_finding_beside_the_others(server: OpenAIServer) -> None:
    write(
        f"rerank: {{backend: service, model: judge-1, base_url: '{server.base_url}'}}\n"
        "kafka: {bootstrap_servers: '127.0.0.1:1'}\nhttp: {port: 0}"
    )
    told = {finding.check: finding for finding in await examine(ReadSettings.now())}
    assert (told["settings"].outcome, told["embedding"].outcome, told["rerank"].outcome) == (OK, OK, FAILED)
    assert told["rerank"].what.startswith("rerank.api_key: is empty, but rerank.base_url is set")
    assert not server.received


async def test_a_folder_that_is_not_there_is_a_failure() -> None:
    outcome, what, todo = await found(model="/nowhere")
    assert (outcome, todo) == (FAILED, "fix this, or leave out rerank.model")
    assert "cannot load rerank.model: there is no folder /nowhere" in what


@pytest.mark.slow
async def test_a_local_model_is_loaded_and_timed(tmp_path: Path) -> None:
    outcome, what, _ = await found(model=str(made(tmp_path / "model")), timeout_seconds=8)
    assert (outcome, what.rpartition(" in ")[0]) == (OK, f"{tmp_path / 'model'} scores 30 texts")
    outcome, what, _ = await found(model=str(made(tmp_path / "classifier", labels=3)))
    assert (outcome, "is no reranker" in what) == (FAILED, True)
