"""Sets of conversations and questions, read in the formats in which they are published.

A message is a record of `conversations`. A question has the evidence that answers it; each piece is a group of
messages, or of sessions, of which any one is enough. The set's `unit` says what counts as a hit.
"""

from __future__ import annotations

import ast
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, Self

import click
import orjson

from benchmarks.evidence.measures import Group
from schemas.times import parse_timestamp

Lines = list[dict[str, Any]]
#: The distance of messages if a set has only one time for a session, and of sessions if it has none.
BETWEEN_MESSAGES, BETWEEN_SESSIONS = timedelta(seconds=30), timedelta(hours=1)
#: The longest content of a record, in bytes of UTF-8.
MOST_BYTES: Final = 32_000


@dataclass(frozen=True, slots=True)
class Question:
    """A question. `updates` are pairs of messages: an outdated statement, and the evidence that states what holds.

    `asked_at` (epoch ms) is 0 if the set does not say when the question is asked.
    """

    user_id: str
    text: str
    kind: str
    evidence: tuple[Group, ...]
    updates: tuple[tuple[str, str], ...] = ()
    asked_at: int = 0


@dataclass(frozen=True, slots=True)
class EvidenceSet:
    """`digest` is the SHA-256 of the files; `unit` says whether a piece of evidence is a message or a session."""

    name: str
    unit: Literal["memory", "session"]
    messages: Lines
    questions: list[Question]
    digest: str

    def first(self, limit: int | None) -> Self:
        """`limit` questions, spread over all, with the messages of their users."""
        if limit is None or limit >= len(self.questions):
            return self
        asked = [self.questions[n * len(self.questions) // limit] for n in range(limit)]
        users = {one.user_id for one in asked}
        return replace(self, questions=asked, messages=[m for m in self.messages if m["user_id"] in users])


def lines(path: Path) -> Lines:
    return [orjson.loads(line) for line in path.read_bytes().splitlines() if line.strip()]


def named(messages: Lines, users: Lines) -> Lines:
    """The messages with their speakers' names."""
    names = {user["user_id"]: {role: user[f"{role}_name"] for role in ("user", "assistant")} for user in users}
    return [{**message, "name": names[message["user_id"]].get(message["role"])} for message in messages]


def questions_of(asked: Lines, said: Lines) -> list[Question]:
    """The questions with evidence, without adversarial ones, which ask for something that was never said."""
    messages = {one["message_id"]: one for one in said if "message_id" in one}
    return [
        Question(
            q["user_id"],
            q["question"],
            q["category"],
            tuple(_group(one) for one in evidence),
            tuple(_updates(q.get("forbidden_message_ids") or (), q["evidence_message_ids"], messages)),
            parse_timestamp(q["asked_at"]) if q.get("asked_at") else 0,
        )
        for q in asked
        if (evidence := q.get("evidence_equivalents") or q["evidence_message_ids"]) and q["category"] != "adversarial"
    ]


def _updates(
    outdated: Iterable[str], evidence: Iterable[str], messages: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Pair each outdated message with the later piece of evidence that has the most words of it, at least half."""
    for old in outdated:
        words = set(messages[old]["content"].lower().split()) if old in messages else set()
        shares = {
            one: len(words & set(messages[one]["content"].lower().split())) / len(words)
            for one in evidence
            if words and one in messages and messages[one]["timestamp"] > messages[old]["timestamp"]
        }
        if shares and max(shares.values()) >= 0.5:
            yield old, max(shares, key=lambda one: shares[one])


def _group(one: str | list[str]) -> Group:
    return frozenset([one] if isinstance(one, str) else one)


def line_files(messages: Path, questions: Path, users: Path | None = None) -> EvidenceSet:
    """Messages and questions in files of lines, like those of LoCoMo and MemDaily."""
    said = named(lines(messages), lines(users)) if users else lines(messages)
    files = [messages, questions, *([users] if users else [])]
    return EvidenceSet(
        messages.name.partition(".")[0], "memory", said, questions_of(lines(questions), said), digest_of(files)
    )


def longmemeval(path: Path) -> EvidenceSet:
    """`longmemeval_s.json` and similar files: each question has its own haystack of sessions, so it is its own user.

    The evidence is sessions (`answer_session_ids`). Questions without evidence, and those that must not be answered
    (`…_abs`), are left out.
    """
    messages, questions = Lines(), list[Question]()
    for row in _rows(path):
        user = row["question_id"]
        answers = set(row["answer_session_ids"])
        if user.endswith("_abs") or not answers:
            continue
        sessions = sorted(
            zip(row["haystack_dates"], row["haystack_session_ids"], row["haystack_sessions"], strict=True),
            key=lambda session: session[0],
        )
        for date, session_id, turns in sessions:
            said = [(turn["role"], turn["content"], f"{user}/{session_id}/{n}") for n, turn in enumerate(turns)]
            messages += _session(user, session_id, _day(date), said)
        evidence = tuple(frozenset([session_id]) for session_id in sorted(answers))
        questions.append(Question(user, row["question"], row["question_type"], evidence))
    return EvidenceSet(path.stem, "session", messages, questions, digest_of([path]))


def beam(path: Path) -> EvidenceSet:
    """BEAM: rows of a file (Parquet, JSON or lines), or a folder with `chat.json` and its probing questions.

    A conversation is a user, each of its batches a session. Message ids are not unique in it: if two messages have
    the id of a source, either is enough. Questions without sources, such as abstention questions, are left out.
    """
    messages, questions = Lines(), list[Question]()
    files = [path]
    if path.is_dir():
        files = sorted([*path.rglob("chat.json"), *path.rglob("probing_questions.json")])
    for user, chat, probing in _conversations(path):
        by_id: defaultdict[int, set[str]] = defaultdict(set)
        at = datetime(2024, 1, 1, tzinfo=UTC)
        for number, batch in enumerate(_batches(chat)):
            turns = list(_turns(batch))
            anchor = next((turn["time_anchor"] for turn in turns if turn.get("time_anchor")), None)
            at = max(at, _anchored(anchor) or at)
            said = []
            for place, turn in enumerate(turns):
                message_id = f"{user}/{number}/{place}"
                by_id[turn["id"]].add(message_id)
                said.append((turn["role"], turn["content"], message_id))
            messages += _session(user, f"{user}/{number}", at, said)
            at += BETWEEN_MESSAGES * len(turns) + BETWEEN_SESSIONS
        for kind, asked in probing.items():
            for one in asked:
                sources = dict.fromkeys(_numbers(one.get("source_chat_ids")))
                evidence = tuple(frozenset(by_id[source]) for source in sources if source in by_id)
                if evidence and kind != "abstention":
                    questions.append(Question(user, one["question"], kind, evidence))
    return EvidenceSet(f"beam-{path.stem}", "memory", messages, questions, digest_of(files))


def _conversations(path: Path) -> Iterator[tuple[str, Any, dict[str, Lines]]]:
    if path.is_dir():
        for chat in sorted(path.rglob("chat.json")):
            asked = chat.parent / "probing_questions" / "probing_questions.json"
            yield chat.parent.name, orjson.loads(chat.read_bytes()), orjson.loads(asked.read_bytes())
        return
    for row in _rows(path):
        probing = row["probing_questions"]
        # The published rows hold a dictionary as Python prints it.
        yield row["conversation_id"], row["chat"], ast.literal_eval(probing) if isinstance(probing, str) else probing


def _batches(chat: Any) -> Iterator[Any]:
    """Sessions of a chat: a list of lists of turns; batches with `turns`; or plans, each with batches."""
    for part in chat:
        if isinstance(part, dict) and "turns" not in part and "role" not in part:
            for plan in part.values():
                yield from _batches(plan or [])
        else:
            yield part


def _turns(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict) and "role" in part:
        yield part
        return
    for inner in part["turns"] if isinstance(part, dict) else part:
        yield from _turns(inner)


def _numbers(value: Any) -> Iterator[int]:
    """All numbers in a question's sources: a list, nested lists, or lists by name."""
    if isinstance(value, int) and not isinstance(value, bool):
        yield value
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _numbers(inner)


def _rows(path: Path) -> Lines:
    if path.suffix == ".parquet":
        import pyarrow.parquet as parquet

        rows: Lines = parquet.read_table(path).to_pylist()
        return rows
    if path.suffix == ".jsonl":
        return lines(path)
    found = orjson.loads(path.read_bytes())
    return found if isinstance(found, list) else [found]


def _session(user: str, session: str, at: datetime, said: list[tuple[str, str, str]]) -> Iterator[dict[str, Any]]:
    for place, (role, content, message_id) in enumerate(said):
        if content.strip():
            yield {
                "user_id": user,
                "session_id": session,
                "message_id": message_id,
                "role": role,
                "content": content.encode()[:MOST_BYTES].decode(errors="ignore"),
                "timestamp": (at + BETWEEN_MESSAGES * place).isoformat(),
            }


def _day(date: str) -> datetime:
    """`2023/05/20 (Sat) 02:21`"""
    day, _, clock = date.partition(" ")
    return datetime.strptime(f"{day} {clock.split()[-1] if clock else '00:00'}", "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


def _anchored(anchor: str | None) -> datetime | None:
    """The time of `March-15-2024`; None for any other text."""
    try:
        return datetime.strptime(anchor or "", "%B-%d-%Y").replace(tzinfo=UTC)
    except ValueError:
        return None


def digest_of(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def loaded(load: Any, path: Path) -> EvidenceSet:
    """The set that `load` reads. A file in another format is a one-line error."""
    try:
        found: EvidenceSet = load(path)
    except (KeyError, TypeError, ValueError, AttributeError, SyntaxError, OSError) as exc:
        raise click.ClickException(f"{path} is not in the expected format: {type(exc).__name__}: {exc}") from exc
    if not found.questions:
        raise click.ClickException(f"{path} has no question with evidence")
    return found
