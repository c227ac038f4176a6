"""The doctor's check of the model that rates exchanges. The model gets one request, with an invented exchange."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

from schemas.settings import Settings
from streams.doctor.finding import Finding, failed, ok, warning
from streams.models.rating import ModelRater

CHECK = "judge"
HARMLESS = "My name is Ann and I am allergic to peanuts.", "I will remember that, Ann."
#: The maximum number of seconds to wait for an answer in this check, even if the settings allow more.
LONGEST_SECONDS = 30.0

_ADVICE = {
    "AuthenticationError": "correct the key",
    "PermissionDeniedError": "allow the key to use this model, or use another model",
    "NotFoundError": "correct base_url or the model",
    "AttributeError": "correct base_url: the server at this address is not a chat service",
    "BadRequestError": "use another model: this one refuses max_tokens 5 or temperature 0",
    "ValueError": "use another model: this one does not answer with a number",
    "RateLimitError": "send fewer requests at a time (memory.scoring.concurrency), or raise the service's limit",
}


async def check_rating(settings: Settings) -> list[Finding]:
    """Ask the rating model to rate an exchange, in the same way as a worker."""
    rater = settings.rater()
    unused = [
        warning(
            CHECK,
            f"{section}.base_url is not used, because {section}.api_key is not set",
            f"set {section}.api_key (any text, if the service needs none), or remove the address",
        )
        for section, service in (("memory.scoring", settings.memory.scoring), ("llm", settings.llm))
        if service.base_url and not service.api_key.get_secret_value()
    ]
    if rater is None:
        return unused or [ok(CHECK, "the local estimator: no key is set, so no service is asked")]
    from streams.models.chat import ChatModel  # its imports take most of a second

    seconds = min(rater.timeout_seconds, LONGEST_SECONDS)
    chat = ChatModel(replace(rater, timeout_seconds=seconds))
    try:
        value = await ModelRater(chat).rate(*HARMLESS)
    finally:
        await chat.close()
    address = urlsplit(rater.base_url)  # without the path, because some services expect the key in the path
    where = f"{rater.model} at {address.scheme}://{address.netloc}"
    if value is not None:
        return [ok(CHECK, f"{where} answers: it rates an exchange worth keeping {value} of 10"), *unused]
    advice = _ADVICE.get(chat.failure, f"check the service; the time limit was {seconds:g} s")
    return [failed(CHECK, f"{where} gives no rating: {chat.failure}", advice), *unused]
