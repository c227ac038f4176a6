"""Sets of conversations and questions, read in the formats in which they are published.

A message is a record of `conversations`. A question has the evidence that answers it; each piece is a group of
messages of which any one is enough. The set's `unit` says what counts as a hit, unless another unit is asked for.
"""

from __future__ import annotations

import ast
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Self

import click
import orjson

from benchmarks.evidence.corrections import Corrected, Correction, corrected
from benchmarks.evidence.measures import Group
from benchmarks.evidence.units import Unit
from schemas.times import parse_timestamp

Lines = list[dict[str, Any]]
#: Kinds of questions that must not be answered. Their evidence is what they confuse.
ADVERSARIAL: Final = frozenset({"adversarial", "abstention"})
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
    """`digest` is the SHA-256 of the files, without those of corrections."""

    name: str
    unit: Unit
    messages: Lines
    questions: list[Question]
    digest: str
    corrected: Corrected | None = None

    @property
    def sessions(self) -> dict[str, str]:
        """The session of each message."""
        return {one["message_id"]: one["session_id"] for one in self.messages if "message_id" in one}

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


def questions_of(asked: Lines, said: Lines, adversarial: bool = False) -> list[Question]:
    """The questions with evidence, without adversarial ones unless they are wanted.

    If a question names only sessions, any message of each is enough.
    """
    messages = {one["message_id"]: one for one in said if "message_id" in one}
    sessions = defaultdict[str, list[str]](list)
    for message_id, one in messages.items():
        sessions[one["session_id"]].append(message_id)
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
        if adversarial or q["category"] not in ADVERSARIAL
        if (evidence := _evidence(q, sessions))
    ]


def _evidence(q: Mapping[str, Any], sessions: Mapping[str, list[str]]) -> list[Any]:
    found: list[Any] = q.get("evidence_equivalents") or q["evidence_message_ids"]
    return found or [sessions[one] for one in q.get("evidence_session_ids") or () if one in sessions]


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


def line_files(
    messages: Path,
    questions: Path,
    users: Path | None = None,
    adversarial: bool = False,
    corrections: Sequence[Correction] = (),
) -> EvidenceSet:
    """Messages and questions in files of lines, like those of LoCoMo and MemDaily."""
    said = named(lines(messages), lines(users)) if users else lines(messages)
    files = [messages, questions, *([users] if users else [])]
    try:
        found = corrected(
            lines(questions), frozenset(one["message_id"] for one in said if "message_id" in one), corrections
        )
    except ValueError as exc:
        raise click.ClickException(f"{questions}: {exc}") from exc
    return EvidenceSet(
        messages.name.partition(".")[0],
        "exchange",
        said,
        questions_of(found.questions, said, adversarial),
        digest_of(files),
        found if corrections else None,
    )


def longmemeval(path: Path, adversarial: bool = False) -> EvidenceSet:
    """`longmemeval_s.json` and similar files: each question has its own haystack of sessions, so it is its own user.

    The evidence is sessions (`answer_session_ids`); for smaller units, their marked turns (`has_answer`), or any turn
    of a session without a mark. Questions without evidence are left out; those that must not be answered (`…_abs`)
    are, too, unless they are wanted.
    """
    messages, questions = Lines(), list[Question]()
    for row in _rows(path):
        user = row["question_id"]
        answers = set(row["answer_session_ids"])
        abstention = user.endswith("_abs")
        if (abstention and not adversarial) or not answers:
            continue
        evidence = dict[str, list[Group]]()
        sessions = sorted(
            zip(row["haystack_dates"], row["haystack_session_ids"], row["haystack_sessions"], strict=True),
            key=lambda session: session[0],
        )
        for date, session_id, turns in sessions:
            said = [(turn["role"], turn["content"], f"{user}/{session_id}/{n}") for n, turn in enumerate(turns)]
            messages += _session(user, session_id, _day(date), said)
            if session_id in answers:
                evidence[session_id] = list(_answers(turns, [message_id for _, _, message_id in said]))
        # A session that the haystack lacks is never found.
        groups = [group for one in sorted(answers) for group in evidence.get(one, [frozenset([one])])]
        kind = "abstention" if abstention else row["question_type"]
        questions.append(Question(user, row["question"], kind, tuple(groups)))
    return EvidenceSet(path.stem, "session", messages, questions, digest_of([path]))


def _answers(turns: Lines, ids: list[str]) -> Iterator[Group]:
    """The marked turns of a session, each a piece of evidence; without marks, any of its turns."""
    spoken = {one: turn for turn, one in zip(turns, ids, strict=True) if turn["content"].strip()}
    marked = [frozenset([one]) for one, turn in spoken.items() if turn.get("has_answer")]
    yield from marked or [frozenset(spoken or ids)]


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
    return EvidenceSet(f"beam-{path.stem}", "exchange", messages, questions, digest_of(files))


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
