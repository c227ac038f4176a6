"""How many right lines the check of a model's summary cuts, and how many wrong ones it lets through.

The lines are the gold lines of `benchmarks/summary_days`, as if a model had written them:

- **right**: all texts of a day's gold lines (with their reasons, dates and solutions, and the other ways to put a
  topic), with the messages that they are from. Each one that is cut is a mistake.
- **of other days**: the gold lines of each other day of the same language, with a message of this day, drawn with a
  fixed seed. Each one that is let through is a mistake, and so it is below.
- **another number**: right texts with a number in digits, which is raised by three, or in Chinese, by one.
- **another date**: right texts with a weekday, a month or a word such as "tomorrow", which is exchanged for another.
- **another name**: right texts with a name, which is exchanged for another one: words that have a capital letter
  within a sentence of a message (not in German, where nouns have one), and the names in `NAMES`.
- **a wrong message**: the gold topics with a message that is not of the topic, drawn with the same seed. "mended"
  cite a message of the topic instead, "kept" have a word of the one that they cite, "elsewhere" cite a third one.

A changed text that the day holds by chance (its number occurs in another message) counts as let through.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from benchmarks.evidence.summary_gold import GROUPS, SECTIONS, GoldDay
from schemas.settings import MemorySettings
from streams.intake.rules.exchanges import Limits
from streams.language.faithful import WORD, begins_sentence
from streams.summaries.grounding.spoken_day import SpokenDay
from streams.summaries.rules import turns_of

SEED: Final = 18
KINDS: Final = ("right", "of other days", "another number", "another date", "another name")
_NAMES: Final = """
    小秦/小郑 嘉定/宝山 徐汇/静安 武汉/长沙 同济/协和 小雨/小雪 阿泽/阿浩 莫干山/雁荡山 锦江/和平 岳麓山/紫金山
    大雁塔/华清池 钟楼/碑林 四川/湖南 西安/洛阳 田村/藤井 南禅寺/清水寺 東福寺/金閣寺 京都/奈良
    포르투갈/이탈리아 지훈/민수 수아/예린 콩이/초코 Raiffeisen/Baywa Hellwig/Bergmann
"""
NAMES: Final = dict(pair.split("/") for pair in _NAMES.split())
"""Names of people and places of the open half, in languages whose names have no mark, with others in their place."""

OTHER_NAME: Final = "Marlowe"

_NUMERALS: Final = "一二三四五六七八九"
_NUMERAL: Final = re.compile(f"[{_NUMERALS[:-1]}](?=[个本天日号月点小年周次件份种台张位])")
_CYCLES: Final = (
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "January February March April June July August September October November December",
    "today tomorrow yesterday",
    "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag",
    "Januar Februar April Mai Juni Juli August September Oktober November Dezember",
    "heute morgen gestern",
    "lunes martes miércoles jueves viernes sábado domingo",
    "enero febrero abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "hoy mañana ayer",
    "周一 周二 周三 周四 周五 周六 周日",
    "今天 明天 后天 昨天",
    "今晚 明晚 昨晚",
    "月曜 火曜 水曜 木曜 金曜 土曜 日曜",
    "今日 明日 昨日",
    "월요일 화요일 수요일 목요일 금요일 토요일 일요일",
    "오늘 내일 어제",
)
_OTHER_DATES: Final = {
    one.casefold(): other
    for cycle in _CYCLES
    for one, other in zip(cycle.split(), [*cycle.split()[2:], *cycle.split()[:2]], strict=True)
}
_DATE: Final = re.compile(
    "|".join(rf"\b{one}\b" if one.isascii() or one[0].isascii() else one for one in _OTHER_DATES), re.IGNORECASE
)


class Case(NamedTuple):
    """A text as a model may have written it about a day, and the message that it cites."""

    kind: str
    day: GoldDay
    text: str
    source: str


def cases(days: Sequence[GoldDay]) -> Iterator[Case]:
    """Yield the cases of all days, as the module's docstring defines them."""
    chance = random.Random(SEED)
    for day in days:
        for text, source in _texts(day):
            yield Case("right", day, text, source)
            for kind, changed in _changed(text, day):
                yield Case(kind, day, changed, source)
        for other in days:
            if other is not day and other.language == day.language:
                for section in SECTIONS:
                    for ways in other.gold[section]:
                        yield Case("of other days", day, ways[0], chance.choice(day.messages).message_id or "")


def passed(days: Sequence[GoldDay]) -> dict[str, dict[str, Counter[str]]]:
    """Return how many texts were cut for which reason ("": not cut), by group of languages and kind."""
    limits = Limits.of(MemorySettings())
    spoken = {day.name: SpokenDay(turns_of(day.messages, limits), ZoneInfo("UTC"), "auto") for day in days}
    counts = {group: {kind: Counter[str]() for kind in KINDS} for group in GROUPS}
    for case in cases(days):
        fault = spoken[case.day.name].fault_of(case.text, [case.source])
        for group in (case.day.group, "all"):
            counts[group][case.kind][str(fault or "")] += 1
    return counts


def cited_anew(days: Sequence[GoldDay]) -> Counter[str]:
    """Return what became of topics that cite a wrong message: mended, kept or elsewhere."""
    chance, limits = random.Random(SEED), Limits.of(MemorySettings())
    found: Counter[str] = Counter()
    for day in days:
        spoken = SpokenDay(turns_of(day.messages, limits), ZoneInfo("UTC"), "auto")
        for topic, ways in zip(day.noted.topics, day.gold["topics"], strict=True):
            others = [one.message_id or "" for one in day.messages if one.message_id not in topic.sources]
            for way in ways if others else ():
                wrong = (chance.choice(others),)
                cited = spoken.sources_of(way, wrong)
                found[
                    "kept" if cited == wrong else "mended" if set(cited) <= set(topic.sources) else "elsewhere"
                ] += 1
    return found


def table(counts: dict[str, dict[str, Counter[str]]]) -> list[str]:
    """Return the lines of a table: of each kind and group, the texts that were cut, of all."""
    lines = ["".join([f"{'cut':16}", *(f"{group:14}" for group in GROUPS)]).rstrip()]
    for kind in KINDS:
        cells = [(found.total() - found[""], found.total()) for found in (counts[group][kind] for group in GROUPS)]
        lines.append("".join([f"{kind:16}", *(f"{f'{cut} of {all_}':14}" for cut, all_ in cells)]).rstrip())
    reasons = {kind: {why: n for why, n in sorted(counts["all"][kind].items()) if why} for kind in KINDS}
    return [
        *lines,
        *(f"{kind}: {', '.join(f'{why} {n}' for why, n in found.items())}" for kind, found in reasons.items()),
    ]


def _texts(day: GoldDay) -> Iterator[tuple[str, str]]:
    noted = day.noted
    for item in (*noted.topics, *noted.preferences, *noted.decisions, *noted.todos, *noted.problems, *noted.insights):
        for _, text in item:
            if isinstance(text, str) and text:
                yield text, item.sources[0]
    for topic, ways in zip(noted.topics, day.gold["topics"], strict=True):
        for way in ways[1:]:
            yield way, topic.sources[0]


def _changed(text: str, day: GoldDay) -> Iterator[tuple[str, str]]:
    number = re.sub(r"\d+", lambda found: str(int(found[0]) + 3), text, count=1)
    if number == text:
        number = _NUMERAL.sub(lambda found: _NUMERALS[_NUMERALS.index(found[0]) + 1], text, count=1)
    date = _DATE.sub(lambda found: _OTHER_DATES[found[0].casefold()], text, count=1)
    name = text
    for one in _names(text, day):
        name = text.replace(one, NAMES.get(one, OTHER_NAME), 1)
        break
    for kind, changed in (("another number", number), ("another date", date), ("another name", name)):
        if changed != text:
            yield kind, changed


def _names(text: str, day: GoldDay) -> Iterator[str]:
    yield from (name for name in NAMES if name in text)
    if day.language == "de":
        return
    said = "\n".join(message.content for message in day.messages)
    inner = {
        found[0]
        for found in WORD.finditer(said)
        if found[0][0].isupper() and not begins_sentence(said[: found.start()].rpartition("\n")[2])
    }
    for found in WORD.finditer(text):
        if found[0] in inner - {"I"} and found[0].casefold() not in _OTHER_DATES and len(found[0]) > 1:
            yield found[0]
