"""The doctor's check of the reranker: does it put texts in order, and within the time that a search waits for it?"""

from __future__ import annotations

import asyncio
import time
from itertools import cycle, islice

from schemas.errors import SiltstoneError
from schemas.settings import RerankSettings, Settings
from streams.doctor.finding import Finding, failed, ok, warning
from streams.models.local_models import model_process, silence
from streams.models.reranking.backends import HARMLESS, NotScored
from streams.models.reranking.process import cross_encoder, predicted
from streams.runtime.called_process import ProcessDied

CHECK = "rerank"
#: The maximum number of seconds to wait for a service's answer in this check.
LONGEST_SECONDS = 30.0


async def check_rerank(settings: Settings) -> list[Finding]:
    """Have invented texts scored, as many as in a search."""
    rerank = settings.reranker()
    if rerank is None:
        return [_off(settings.rerank)]
    found = await (_asked(rerank) if rerank.backend == "service" else _loaded(rerank))
    if isinstance(found, str):
        return [failed(CHECK, found, "fix this, or leave out rerank.model")]
    told = f"{rerank.model} scores {rerank.candidates} texts in {found:.1f} s"
    if found > rerank.timeout_seconds:
        return [
            warning(
                CHECK,
                f"{told}, and a search waits {rerank.timeout_seconds:g} s: most would not be reranked",
                "lower rerank.candidates, raise rerank.timeout_seconds, or set a faster rerank.model",
            )
        ]
    return [ok(CHECK, told)]


def _off(rerank: RerankSettings) -> Finding:
    if rerank.base_url or rerank.api_key.get_secret_value():
        return warning(CHECK, "off, although a service is set: rerank.model is empty", "set rerank.model")
    return ok(CHECK, "off: rerank.model is empty")


def _texts(rerank: RerankSettings) -> tuple[str, list[str]]:
    question, texts = HARMLESS
    return question, list(islice(cycle(texts), rerank.candidates))


async def _asked(rerank: RerankSettings) -> float | str:
    """Return the seconds that a service took, or an error text. It gets the same request as from a worker."""
    from streams.models.reranking.service import RerankService  # its imports take most of a second

    service, began = RerankService(rerank), time.monotonic()
    try:
        async with asyncio.timeout(LONGEST_SECONDS):
            await service.scores(*_texts(rerank))
        return time.monotonic() - began
    except TimeoutError:
        return f"{service.where} does not rerank within {LONGEST_SECONDS:g} s"
    except NotScored as exc:
        return str(exc)
    finally:
        await service.close()


async def _loaded(rerank: RerankSettings) -> float | str:
    """Return the seconds that a local model took, without loading it, or an error text."""
    process = model_process("reranking")
    try:
        return await process.call(_timed, rerank.model, *_texts(rerank))
    except ProcessDied:
        return "the process that loaded the reranker was killed, probably for lack of memory"
    finally:
        await process.close()


def _timed(model: str, question: str, texts: list[str]) -> float | str:
    """Load a model and time its scores. This runs in a separate process."""
    silence()
    try:
        loaded, began = cross_encoder(model), time.monotonic()
        predicted(loaded, question, texts)
        return time.monotonic() - began
    except SiltstoneError as exc:
        return str(exc)
    except Exception as exc:
        return f"rerank.model {model} does not score: {type(exc).__name__}"
