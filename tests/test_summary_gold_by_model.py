"""`benchmarks/summaries.py --gold FILE --model NAME`: the product's summariser, against a service of ours."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from benchmarks.evidence import summary_gold
from benchmarks.evidence.summary_gold import GoldDay
from schemas.summaries import Summary
from tests.support.openai_server import Answer, OpenAIServer, Received

ROOT: Final = Path(summary_gold.__file__).parents[2]
OPEN: Final = ROOT / "benchmarks" / "summary_days" / "open.jsonl"
#: The variable that names a real service, as http://127.0.0.1:8000/v1. Its words are not judged.
REAL: Final = "CHAT_TEST_URL"
#: No day of the file says so.
INVENTED: Final[dict[str, list[dict[str, Any]]]] = {
    "insights": [{"text": "The user's cousin Ludmila repairs violins in Tromso", "sources": ["m1"]}],
    "decisions": [{"text": "Buy 8731 shares", "reason": "", "technical": False, "sources": ["m2"]}],
    "problems": [{"text": "", "solution": "", "sources": ["m1"]}],
}


def shown(day: GoldDay, request: Received) -> dict[str, Any]:
    """The gold lines of a day, with the short ids of the request, and lines that no message holds."""
    said = {one["text"]: one["id"] for one in request.quoted["messages"]}
    short = {message.message_id: said[message.content] for message in day.messages}
    answer = day.noted.model_dump(mode="json")
    for name in Summary.model_fields:
        for item in answer[name]:
            item["sources"] = [short[source] for source in item["sources"]]
        answer[name] += INVENTED.get(name, [])
    return answer


def from_gold(request: Received) -> Answer:
    texts = [one["text"] for one in request.quoted["messages"]]
    for day in summary_gold.read(OPEN):
        if [message.content for message in day.messages] == texts:
            return Answer(json.dumps(shown(day, request), ensure_ascii=False))
    raise AssertionError("no day has these messages")


async def run(*options: str, **environment: str) -> tuple[int, str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SILTSTONE_", "OPENAI_"))}
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, "benchmarks/summaries.py", "--gold", str(OPEN), "--model", "openai/scripted", *options),
        cwd=ROOT,
        env=inherited | {"NO_PROXY": "127.0.0.1", "PYTHONPATH": str(ROOT)} | environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await running.communicate()
    return running.returncode or 0, out.decode(), err.decode()


KEY: Final = {"SILTSTONE_LLM__API_KEY": "sk-1"}


@pytest.mark.slow
async def test_gold_lines_of_a_model_score_and_what_no_message_holds_is_cut() -> None:
    """Of all gold lines, precision and recall are nearly 1: what is missing was cut."""
    async with OpenAIServer(from_gold) as server:
        code, out, err = await run("--base-url", server.base_url, "--json", **KEY)
    assert code == 0, err
    assert len(server.received) == 32
    assert {request.key for request in server.received} == {"sk-1"}
    counts = orjson.loads(out.splitlines()[-1])
    for row in summary_gold.ROWS:
        assert counts["all"][row]["precision"] == 1.0, row
        assert counts["all"][row]["recall"] > 0.96, row
    assert counts["cut"]["name"] + counts["cut"]["words"] >= 32
    assert counts["cut"]["number"] >= 32
    assert "days without an answer: none" in out


@pytest.mark.slow
async def test_days_without_a_usable_answer_are_counted() -> None:
    """Two of three: one answers with other things than a summary, one with lines that no message holds."""
    nothing = json.dumps({name: [] for name in Summary.model_fields} | INVENTED)
    async with OpenAIServer(from_gold) as server:
        server.script("I cannot.", "Sorry.", nothing, nothing)
        code, out, err = await run("--base-url", server.base_url, "--most", "3", **KEY)
    assert code == 0, err
    assert "3 days" in out
    (told,) = [line for line in out.splitlines() if line.startswith("days without a usable answer")]
    assert "no item states only what the messages say 1, there is no JSON object with topics" in told
    assert told.endswith(" 1")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "what"),
    [(401, "the service refuses the key (AuthenticationError)"), (404, "the service does not know the model")],
)
async def test_a_failure_of_every_day_ends_it_with_its_cause(status: int, what: str) -> None:
    async with OpenAIServer(lambda _: Answer(status=status)) as server:
        url = server.base_url
        code, out, err = await run("--base-url", url, **KEY)
    assert (code, out) == (1, "")
    assert f"Error: {url}: {what}" in err
    assert "sk-1" not in err
    assert len(server.received) == 1


@pytest.mark.slow
async def test_no_server_and_no_key_are_told() -> None:
    code, _, err = await run("--base-url", "http://127.0.0.1:9/v1", **KEY)
    assert (code, "http://127.0.0.1:9/v1: no server answers there" in err) == (1, True)
    code, _, err = await run("--base-url", "http://127.0.0.1:9/v1")
    assert (code, "llm.providers.openai.api_key: is empty" in err) == (1, True)


@pytest.mark.slow
@pytest.mark.skipif(
    REAL not in os.environ, reason=f"{REAL} names no OpenAI-compatible service, see benchmarks/README.md"
)
async def test_a_real_service_answers_or_its_answers_are_counted() -> None:
    code, out, err = await run("--base-url", os.environ[REAL], "--most", "1", **KEY)
    assert code == 0, err
    assert "days without an answer: none" in out
