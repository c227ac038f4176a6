"""An OpenAI-compatible service on a free loopback port: it records what it is sent and answers as it is told.

    async with OpenAIServer() as server:
        server.script("7", Answer(status=429, headers={"retry-after": "30"}), Answer(fault="endless"))
        ...                                     # the first three requests are answered so, later ones "5"
        assert server.received[0].body["model"] == "judge"

A request for embeddings is answered with vectors that say which words a text has, one for a reranking with the number
of the question's words that each text has; `Answer.body` says otherwise.

Real HTTP over real sockets, in the test's own event loop; nothing of it is left when the block ends.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
import orjson

CHAT_PATH, EMBEDDINGS_PATH, RERANK_PATH = "/chat/completions", "/embeddings", "/rerank"
#: Of the vectors, unless a request asks for another number.
DIMENSIONS = 32
#: Seconds between the bytes of an answer that never ends.
DRIP_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Received:
    """A request. Header names are in lower case; `body` is the parsed JSON."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def key(self) -> str:
        """The bearer token."""
        return self.headers.get("authorization", "").removeprefix("Bearer ")

    @property
    def quoted(self) -> Any:
        """What the user message quotes as data: the JSON between its two marks."""
        _, line, _ = re.split(r"\n=== \w+ ===\n", self.said_by("user"))
        return orjson.loads(line)

    def said_by(self, role: str) -> str:
        """The content of the one message with this role."""
        (content,) = [message["content"] for message in self.body["messages"] if message["role"] == role]
        return str(content)

    @property
    def texts(self) -> list[str]:
        """What is to be embedded; empty where something else is asked for."""
        texts: list[str] = self.body.get("input", [])
        return texts

    @property
    def documents(self) -> list[str]:
        """What is to be put in order; empty where something else is asked for."""
        documents: list[str] = self.body.get("documents", [])
        return documents


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request is answered with: `text` as a chat completion, the texts' vectors or scores, or `body`.

    `finish` says why a chat completion ends: "length" where it was cut off at its tokens.
    `fault`: "broken" closes the connection without an answer, "cut" in the midst of one; "endless" drips bytes.
    """

    text: str | None = "5"
    finish: str = "stop"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    delay: float = 0.0
    fault: Literal["", "broken", "cut", "endless"] = ""


Answering = Callable[[Received], Answer]


class OpenAIServer:
    """The service. `answering` decides once the script is used up; while `gate` is cleared, no answer is given."""

    def __init__(self, answering: Answering = lambda _: Answer()) -> None:
        self.answering = answering
        self.received: list[Received] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.under_way = 0
        self.most_under_way = 0
        self._script: deque[Answer] = deque()
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def origin(self) -> str:
        assert self._server is not None, "the server runs within `async with`"
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def base_url(self) -> str:
        """What a client is given."""
        return f"{self.origin}/v1"

    def script(self, *answers: str | Answer) -> None:
        """Answer the next requests with these, in their order."""
        self._script.extend(Answer(answer) if isinstance(answer, str) else answer for answer in answers)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until either side closes it."""
        try:
            # A client that gives up closes its end, in the midst of whatever was under way.
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._answer_one(reader, writer):
                    pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection lives on."""
        request = await _read(reader)
        self.received.append(request)
        if not request.path.endswith((CHAT_PATH, EMBEDDINGS_PATH, RERANK_PATH)):
            answer = Answer(status=404)
        else:
            answer = self._script.popleft() if self._script else self.answering(request)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await self.gate.wait()
            await asyncio.sleep(answer.delay)
            return await _write(writer, request, answer)
        finally:
            self.under_way -= 1


async def _read(reader: asyncio.StreamReader) -> Received:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, colon, value in (line.partition(":") for line in lines) if colon}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, path, headers, orjson.loads(body or b"{}"))


async def _write(writer: asyncio.StreamWriter, request: Received, answer: Answer) -> bool:
    if answer.fault == "broken":
        return False
    body = _body(request, answer)
    endless = answer.fault == "endless"
    headers = {"content-type": "application/json", **answer.headers}
    headers |= {"transfer-encoding": "chunked"} if endless else {"content-length": str(len(body))}
    lines = [f"HTTP/1.1 {answer.status} -", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    writer.write("\r\n".join(lines).encode("latin-1"))
    while endless:
        writer.write(b"1\r\n \r\n")
        await writer.drain()
        await asyncio.sleep(DRIP_SECONDS)
    writer.write(body[: len(body) // 2] if answer.fault == "cut" else body)
    await writer.drain()
    return answer.fault != "cut"


def _body(request: Received, answer: Answer) -> bytes:
    """As OpenAI's; an error quotes the key and what was sent, as services do."""
    if answer.body is not None:
        return answer.body
    if answer.status >= 400:
        return orjson.dumps({"error": {"message": f"{request.key}: {request.body}", "type": "error", "code": None}})
    if request.path.endswith(EMBEDDINGS_PATH):
        vectors = [word_vector(text, request.body.get("dimensions", DIMENSIONS)) for text in request.texts]
        return embeddings(vectors, as_base64=request.body.get("encoding_format") == "base64")
    if request.path.endswith(RERANK_PATH):
        asked = set(re.findall(r"\w+", request.body["query"].lower()))
        return scored([len(asked & set(re.findall(r"\w+", text.lower()))) for text in request.documents])
    return orjson.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": request.body.get("model", ""),
            "choices": [
                {"index": 0, "finish_reason": answer.finish, "message": {"role": "assistant", "content": answer.text}}
            ],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
    )


def word_vector(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """The sum of its words' vectors, each of them a hash of the word: not of unit length, never zero."""
    vector = np.zeros(dimensions)
    for word in re.findall(r"[a-z]+|\S", text.lower()):
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "little")
        vector += np.random.default_rng(seed).normal(size=dimensions)
    return [float(number) for number in vector.astype(np.float32)]


def embeddings(
    vectors: Sequence[object], places: Sequence[object] | None = None, *, as_base64: bool = False
) -> bytes:
    """An answer with these vectors; `places` are their `index`."""
    return orjson.dumps(
        {
            "object": "list",
            "model": "embedder-1",
            "data": [
                {
                    "object": "embedding",
                    "index": place,
                    "embedding": base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()
                    if as_base64
                    else vector,
                }
                for place, vector in zip(range(len(vectors)) if places is None else places, vectors, strict=True)
            ],
            "usage": {"prompt_tokens": 1, "total_tokens": 1},
        }
    )


def scored(scores: Sequence[object], places: Sequence[object] | None = None, *, name: str = "results") -> bytes:
    """An answer with these scores, best first as services give them; `places` are their `index`."""
    rows = [
        {"index": place, "relevance_score": score, "document": {"text": "it may be repeated"}}
        for place, score in zip(range(len(scores)) if places is None else places, scores, strict=True)
    ]
    if places is None:
        rows.sort(key=lambda row: -float(str(row["relevance_score"])))
    return orjson.dumps({"id": "rerank-1", name: rows, "meta": {"billed_units": {"search_units": 1}}})
