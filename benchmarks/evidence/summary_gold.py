"""Summaries of days beside lines that their author noted: which lines are right, by section.

A line counts as right when its content words are those of a gold line of its section.

- **Content words** of a text are a set, in lower case (Unicode NFKC, then `casefold`). Latin and other spaced text
  gives its words and numbers, without accents and without the stop words of the day's language (English if it has no
  list). A run of Chinese and Japanese characters is cut at its function characters (`FUNCTION_CHARACTERS`), and a
  word of Hangul loses one final particle (`PARTICLES`); each piece gives its pairs of neighbouring characters, or
  itself if it is one character.
- **Overlap** of two sets is their F-measure, 2·|both| / (|one| + |other|). Two lines match if it is 0.5 or more
  (`LEAST_OVERLAP`) and at least two content words are in both; one is enough where a line has only one.
- **A gold line may be put in several ways**; the best one counts: a topic's `text` or one of its `alternatives`, a
  decision with or without its reason, a task with or without its date.
- **Matching is one to one and greedy**, the largest overlap first; of equal ones the earlier found line, then the
  earlier gold line. Each section of each day is matched for itself.
- **Solutions** are an extra row: a found solution is right if its problem is matched and the two solutions overlap by
  0.5 or more.

Kinds of preferences, the messages of topics, and whether a task is explicit are not scored.

>>> sorted(content_words("Call the dentist on Monday", "en"))
['call', 'dentist', 'monday']
>>> sorted(content_words("我的猫粮", "zh"))
['猫粮']
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from schemas.conversations import ChatMessage
from schemas.summaries import Summary

LEAST_OVERLAP: Final = 0.5
SECTIONS: Final = ("topics", "preferences", "decisions", "tasks", "problems", "insights")
ROWS: Final = (*SECTIONS, "solutions")
GROUPS: Final = ("en", "zh", "others", "all")

STOP_WORDS: Final = {
    language: frozenset(words.split())
    for language, words in {
        "en": """
            a an the and or but so if then than as of at by for from in into on to with about is are was were be been
            am i you he she it we they me him her us them my your his its our their this that these those there here
            do does did have has had will would can could should not no just also too very s t m re ve ll d
        """,
        "de": """
            der die das den dem des ein eine einen einem einer und oder aber wenn dann als von vom zu zum zur in im an
            am auf für mit bei aus um ist sind war waren sein bin hat habe haben wird werden kann muss ich du er sie
            es wir ihr mich mir dich dir uns mein meine seine unser nicht kein auch noch schon nur so da hier
        """,
        "es": """
            el la los las un una unos unas y o pero si que como de del a al en con por para sin es son era ser esta
            estan fue ha he han hay yo tu ella nosotros ellos me te se lo le les nos mi mis su sus este esto eso no ya
            muy tambien mas
        """,
    }.items()
}
FUNCTION_CHARACTERS: Final = "的了着吗呢吧啊呀就都也很是在我你他她它们这那把被はがをにのでとへも"
PARTICLES: Final = "은는이가을를에의도로와과"

_HANGUL: Final = "\uac00-\ud7a3"
_UNSPACED: Final = "\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_PIECE: Final = re.compile(f"[{_UNSPACED}]+|[{_HANGUL}]+|[^\\W_{_HANGUL}{_UNSPACED}]+")
_CUT: Final = re.compile(f"[{FUNCTION_CHARACTERS}]")


class GoldDay(NamedTuple):
    """A day's messages, and by section the ways in which each gold line may be put; `solutions` go with problems."""

    name: str
    language: str
    messages: tuple[ChatMessage, ...]
    gold: dict[str, list[list[str]]]
    solutions: list[str]
    noted: Summary = Summary()
    """The gold lines as a summary. A line that names no messages cites the one with most of its content words."""

    @property
    def group(self) -> str:
        return self.language if self.language in GROUPS else "others"


class Compared(NamedTuple):
    """Lines of one section of one day: found and gold lines that match, found ones, and gold ones that do not."""

    right: list[tuple[str, str]]
    wrong: list[str]
    missed: list[str]


class Count(NamedTuple):
    """How many lines are right, how many were found, and how many gold lines there are."""

    right: int = 0
    found: int = 0
    wanted: int = 0

    @property
    def precision(self) -> float | None:
        return self.right / self.found if self.found else None

    @property
    def recall(self) -> float | None:
        return self.right / self.wanted if self.wanted else None

    def with_(self, compared: Compared) -> Count:
        right = len(compared.right)
        return Count(
            self.right + right,
            self.found + right + len(compared.wrong),
            self.wanted + right + len(compared.missed),
        )


def content_words(text: str, language: str) -> frozenset[str]:
    """The content words of a line, as the module's docstring defines them."""
    stop = STOP_WORDS.get(language, STOP_WORDS["en"])
    words: set[str] = set()
    for piece in _PIECE.findall(unicodedata.normalize("NFKC", text).casefold()):
        if re.match(f"[{_HANGUL}]", piece):
            words.update(_pairs(piece[:-1] if len(piece) > 1 and piece[-1] in PARTICLES else piece))
        elif re.match(f"[{_UNSPACED}]", piece):
            words.update(pair for part in _CUT.split(piece) if part for pair in _pairs(part))
        elif piece not in stop and (word := _without_accents(piece)) not in stop:
            words.add(word)
    return frozenset(words)


def _pairs(text: str) -> list[str]:
    return [text[at : at + 2] for at in range(len(text) - 1)] or [text]


def _without_accents(word: str) -> str:
    return "".join(each for each in unicodedata.normalize("NFKD", word) if not unicodedata.combining(each))


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """The F-measure of two sets of content words; 0 if they have too few words in common to match."""
    both = len(one & other)
    return 2 * both / (len(one) + len(other)) if both >= min(2, len(one), len(other)) > 0 else 0.0


def matched(found: Sequence[str], gold: Sequence[Sequence[str]], language: str) -> dict[int, int]:
    """The places of found lines, each with the place of the gold line that it matches."""
    found_words = [content_words(line, language) for line in found]
    gold_words = [[content_words(way, language) for way in ways] for ways in gold]
    overlaps = [
        (-max(overlap(words, way) for way in ways), at, place)
        for at, words in enumerate(found_words)
        for place, ways in enumerate(gold_words)
    ]
    pairs: dict[int, int] = {}
    for less, at, place in sorted(overlaps):
        if -less >= LEAST_OVERLAP and at not in pairs and place not in pairs.values():
            pairs[at] = place
    return pairs


def compared(day: GoldDay, summary: Summary) -> dict[str, Compared]:
    """The rows of a day: its sections, and the solutions."""
    lines = {
        "topics": [one.title for one in summary.topics],
        "preferences": [one.text for one in summary.preferences],
        "decisions": [one.text for one in summary.decisions],
        "tasks": [one.text for one in summary.todos],
        "problems": [one.text for one in summary.problems],
        "insights": [one.text for one in summary.insights],
    }
    rows: dict[str, Compared] = {}
    for section in SECTIONS:
        found, gold = lines[section], day.gold[section]
        pairs = matched(found, gold, day.language)
        rows[section] = _rows(found, [ways[0] for ways in gold], pairs)
        if section == "problems":
            solved = [one.solution for one in summary.problems]
            same = {
                at: place
                for at, place in pairs.items()
                if matched([solved[at]], [[day.solutions[place]]], day.language)
            }
            rows["solutions"] = _rows(solved, day.solutions, same)
    return rows


def _rows(found: Sequence[str], gold: Sequence[str], pairs: dict[int, int]) -> Compared:
    """Without empty lines: a problem without a solution has one."""
    return Compared(
        [(found[at], gold[place]) for at, place in sorted(pairs.items())],
        [line for at, line in enumerate(found) if line and at not in pairs],
        [line for place, line in enumerate(gold) if line and place not in pairs.values()],
    )


def counted(days: Iterable[tuple[GoldDay, dict[str, Compared]]]) -> dict[str, dict[str, Count]]:
    """The counts of each row, by group of languages."""
    counts = {group: dict.fromkeys(ROWS, Count()) for group in GROUPS}
    for day, rows in days:
        for group in (day.group, "all"):
            for row, lines in rows.items():
                counts[group][row] = counts[group][row].with_(lines)
    return counts


def read(path: Path) -> Iterator[GoldDay]:
    """The days of a file of `benchmarks/summary_days`. Its messages are a minute apart, in one session."""
    for line in path.read_bytes().splitlines():
        given = orjson.loads(line)
        messages = tuple(
            ChatMessage.model_validate(
                {
                    "user_id": given["id"],
                    "session_id": given["id"],
                    "message_id": f"{given['id']}-{place}",
                    "timestamp": f"2025-06-02T09:{place:02}:00Z",
                    **message,
                }
            )
            for place, message in enumerate(given["messages"])
        )
        gold = {section: [ways_of(item) for item in given["gold"][section]] for section in SECTIONS}
        solutions = [item.get("solution", "") for item in given["gold"]["problems"]]
        noted = _noted(given["gold"], messages, given["language"])
        yield GoldDay(given["id"], given["language"], messages, gold, solutions, noted)


def _noted(gold: dict[str, list[dict[str, Any]]], messages: Sequence[ChatMessage], language: str) -> Summary:
    said = [content_words(f"{message.name or ''} {message.content}", language) for message in messages]

    def cited(item: dict[str, Any]) -> dict[str, Any]:
        words = content_words(" ".join(ways_of(item)), language)
        places = item.get("messages") or [max(range(len(said)), key=lambda place: len(words & said[place]))]
        return item | {"sources": [messages[place].message_id for place in places]}

    lines = {section: [cited(item) for item in gold[section]] for section in SECTIONS}
    topics = [item | {"title": item["text"]} for item in lines.pop("topics")]
    return Summary.model_validate({**lines, "topics": topics, "todos": lines["tasks"]})


def ways_of(item: dict[str, Any]) -> list[str]:
    """A gold line and the other ways to put it."""
    more = [f"{item['text']} {item[key]}" for key in ("reason", "when") if key in item]
    return [item["text"], *item.get("alternatives", ()), *more]


def table(counts: dict[str, dict[str, Count]]) -> list[str]:
    """Precision, recall, and right lines of found and gold ones, for each row and group of languages."""
    lines = ["".join([f"{'':12}", *(f"{group:26}" for group in GROUPS)]).rstrip()]
    for row in ROWS:
        cells = [counts[group][row] for group in GROUPS]
        lines.append("".join([f"{row:12}", *(f"{_cell(count):26}" for count in cells)]).rstrip())
    return [*lines, "precision and recall (right of found and of gold lines); a dash: no lines"]


def _cell(count: Count) -> str:
    return f"{_share(count.precision)} {_share(count.recall)} ({count.right} of {count.found}, {count.wanted})"


def _share(value: float | None) -> str:
    return f"{'–':>4}" if value is None else f"{value:.2f}"


def as_json(counts: dict[str, dict[str, Count]]) -> dict[str, dict[str, dict[str, float | None]]]:
    return {
        group: {
            row: {**count._asdict(), "precision": count.precision, "recall": count.recall}
            for row, count in rows.items()
        }
        for group, rows in counts.items()
    }
