"""Time expressions of a text: which windows they mean, in English and Chinese, and that no text does harm."""

from __future__ import annotations

import doctest
import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.times import iso, parse_timestamp
from tables.time_expressions import calendar, chinese, chinese_tense, english, english_tense, reader, windows
from tables.time_expressions.windows import MOST_WINDOWS, Window, may_have_times, windows_of

GOLD = Path(__file__).parents[3] / "benchmarks" / "times"
OSLO = ZoneInfo("Europe/Oslo")
#: A Wednesday.
SAID = parse_timestamp("2026-03-11T18:05:00+01:00")


def shown(found: list[Window], zone: ZoneInfo = OSLO) -> list[str]:
    """Return windows as `2026-03-06..2026-03-07 day`, with the time of day for hours."""
    told = []
    for one in found:
        form = "%Y-%m-%dT%H" if one.grain == "hour" else "%Y-%m-%d"
        start, end = (datetime.fromtimestamp(millis / 1000, zone).strftime(form) for millis in (one.start, one.end))
        told.append(f"{start}..{end} {one.grain}")
    return told


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I saw her yesterday", ["2026-03-10..2026-03-11 day"]),
        ("I broke my arm on Monday, and it still hurts", ["2026-03-09..2026-03-10 day"]),
        ("We will meet on Monday", ["2026-03-16..2026-03-17 day"]),
        ("What did I do last Friday?", ["2026-03-06..2026-03-07 day"]),
        ("Monday of next week", ["2026-03-16..2026-03-17 day"]),
        ("On Tuesday morning last week it snowed", ["2026-03-03T06..2026-03-03T12 hour"]),
        ("The dentist is next Thursday at 2:15pm", ["2026-03-19T14..2026-03-19T15 hour"]),
        ("this evening around 8", ["2026-03-11T20..2026-03-11T21 hour"]),
        ("It is open from 9 to 5pm tomorrow", ["2026-03-12T09..2026-03-12T17 hour"]),
        ("the parcel came half an hour ago", ["2026-03-11T17..2026-03-11T18 hour"]),
        ("I woke up at 6:30 from Monday to Friday", ["2026-03-02..2026-03-07 day"]),
        ("I joined last Tues.", ["2026-03-03..2026-03-04 day"]),
        ("I'll be away from Friday until Monday", ["2026-03-13..2026-03-17 day"]),
        ("last weekend", ["2026-03-07..2026-03-09 day"]),
        ("two weeks ago", ["2026-02-23..2026-03-02 week"]),
        ("in a month I will know", ["2026-04-01..2026-05-01 month"]),
        ("I was in Rome in May", ["2025-05-01..2025-06-01 month"]),
        ("I'm going to Rome in May", ["2026-05-01..2026-06-01 month"]),
        ("From June to August I worked on a farm", ["2025-06-01..2025-09-01 month"]),
        ("I got it about 10 days ago", ["2026-03-01..2026-03-02 day"]),
        ("I did have a fitting on Monday", ["2026-03-09..2026-03-10 day"]),
        ("I have a fitting on the 15th of next month", ["2026-04-15..2026-04-16 day"]),
        ("by the end of March", ["2026-03-22..2026-04-01 week"]),
        ("Can you remind me on the 20th?", ["2026-03-20..2026-03-21 day"]),
        ("Friday, March 6 we went skiing", ["2026-03-06..2026-03-07 day"]),
        ("It closes on Wed, April 5, 2023", ["2023-04-05..2023-04-06 day"]),
        ("on 15/03/2026 or 15.03.2026", ["2026-03-15..2026-03-16 day"]),
        ("last summer", ["2025-06-01..2025-09-01 season"]),
        ("in winter 2021", ["2021-12-01..2022-03-01 season"]),
        ("Q2 2025", ["2025-04-01..2025-07-01 season"]),
        ("I moved in 2019", ["2019-01-01..2020-01-01 year"]),
        ("in the 90s", ["1990-01-01..2000-01-01 year"]),
        ("I have lived here for three years", ["2023-03-11..2026-03-12 year"]),
        ("we've lived here since 2011", ["2011-01-01..2026-03-12 year"]),
        ("the next two weeks", ["2026-03-11..2026-03-26 week"]),
        ("on Christmas Eve we ate fish", ["2025-12-24..2025-12-25 day"]),
    ],
)
def test_english(text: str, expected: list[str]) -> None:
    assert shown(windows_of(text, SAID, OSLO)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我周一摔了一跤", ["2026-03-09..2026-03-10 day"]),
        ("周五要开会", ["2026-03-13..2026-03-14 day"]),
        ("上上周三", ["2026-02-25..2026-02-26 day"]),
        ("这个周末", ["2026-03-14..2026-03-16 day"]),
        ("周六周日都要加班", ["2026-03-14..2026-03-15 day", "2026-03-15..2026-03-16 day"]),
        ("明天8点开会", ["2026-03-12T08..2026-03-12T09 hour"]),
        ("晚上十二点", ["2026-03-12T00..2026-03-12T01 hour"]),
        ("前天夜里两点", ["2026-03-09T02..2026-03-09T03 hour"]),
        ("今天早上七点半到九点", ["2026-03-11T07..2026-03-11T09 hour"]),
        ("半个月前", ["2026-02-24..2026-02-25 day"]),
        ("我三年前在那工作了两年", ["2023-01-01..2024-01-01 year"]),
        ("我在那住了三年了", ["2023-03-11..2026-03-12 year"]),
        ("三天之内回复我", ["2026-03-11..2026-03-15 day"]),
        ("2019年12月31日23点", ["2019-12-31T23..2020-01-01T00 hour"]),
        ("二〇一八年五月底", ["2018-05-22..2018-06-01 week"]),
        ("98年我上小学", ["1998-01-01..1999-01-01 year"]),
        ("等国庆再去", ["2026-10-01..2026-10-02 day"]),
        ("春节我回了老家", ["2026-02-17..2026-02-18 day"]),
        ("去年除夕我们在海边", ["2025-01-28..2025-01-29 day"]),
        ("今年中秋我要回老家", ["2026-09-25..2026-09-26 day"]),
        ("中秋节吃了月饼", ["2025-10-06..2025-10-07 day"]),
        ("端午要去划船", ["2026-06-19..2026-06-20 day"]),
        ("2024年元宵节很热闹", ["2024-02-24..2024-02-25 day"]),
        ("明年5月1号到7号", ["2027-05-01..2027-05-08 day"]),
        ("本月底", ["2026-03-22..2026-04-01 week"]),
        ("去年年初", ["2025-01-01..2025-03-01 month"]),
        ("前年冬天", ["2024-12-01..2025-03-01 season"]),
        ("从去年开始", ["2025-01-01..2026-03-12 year"]),
        ("从下周一开始我要早起", ["2026-03-16..2026-03-17 day"]),
        ("马上月底了", ["2026-03-22..2026-04-01 week"]),
        ("上周三次加班", ["2026-03-02..2026-03-09 week"]),
        ("Friday我没去，明天去", ["2026-03-06..2026-03-07 day", "2026-03-12..2026-03-13 day"]),
    ],
)
def test_chinese(text: str, expected: list[str]) -> None:
    assert shown(windows_of(text, SAID, OSLO)) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("May I ask?", "This may help", "the last day of school", "a few days ago", "every Friday at 6pm"),
        *(
            "I slept for three days",
            "I read it in two days",
            "I was born in 1987",
            "$2019",
            "version 3.11",
            "Dr. Friday",
        ),
        *(
            "a busy Monday",
            "my Tuesday class",
            "the following Monday",
            "the 7:45 AM train",
            "at 2pm on Tuesdays",
            "Taco Tuesday",
            "on Mondays",
            "it will have run for 3 days",
            "in the morning",
            "on 12/05/2025",
            "on 2026-02-30",
            "since I was ten",
        ),
        *(
            "一周三次健身",
            "每月15号发工资",
            "十几年前",
            "一两天前",
            "五号楼",
            "一周六天",
            "有一点累",
            "大年初一",
            "他叫赵国庆",
            "中秋快乐",
            "端午安康",
            "春节联欢晚会很好看",
            "吃中秋月饼",
            "1980年春节",
        ),
        *("三点建议", "下午茶", "过两天", "我叫周一鸣", "上个月饼", "后天培养的习惯"),
    ],
)
def test_no_window(text: str) -> None:
    """Names, habits, durations, vague words and dates that do not exist."""
    assert shown(windows_of(text, SAID, OSLO)) == []


def test_at_most_four_in_the_order_of_the_text_and_none_twice() -> None:
    text = "in 2019, in 2012, in 2019, in 2015, 2020年, in 2021 and in 2022"
    assert [found.text for found in windows_of(text, SAID, OSLO)] == ["in 2019", "in 2012", "in 2015", "2020年"]


def test_days_are_those_of_the_users_zone() -> None:
    """At 23:30 in London it is the next day in Shanghai."""
    said = parse_timestamp("2026-03-14T23:30:00Z")
    shanghai = ZoneInfo("Asia/Shanghai")
    assert shown(windows_of("today", said, ZoneInfo("Europe/London")), ZoneInfo("Europe/London")) == [
        "2026-03-14..2026-03-15 day"
    ]
    assert shown(windows_of("today", said, shanghai), shanghai) == ["2026-03-15..2026-03-16 day"]


def test_a_day_of_a_changed_clock_has_23_or_25_hours() -> None:
    """Windows begin at local midnight. An hour that the clocks skip is none."""
    said = parse_timestamp("2026-03-28T12:00:00+01:00")
    [spring] = windows_of("tomorrow", said, OSLO)
    [autumn] = windows_of("on 2026-10-25", said, OSLO)
    assert (spring.end - spring.start, autumn.end - autumn.start) == (23 * 3_600_000, 25 * 3_600_000)
    assert windows_of("tomorrow at 2am", said, OSLO) == []


def test_windows_outside_of_1990_to_2100_are_dropped() -> None:
    assert windows_of("in 1985, in 2099 and in 90 years", SAID, OSLO) == windows_of("in 2099", SAID, OSLO)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("part", ["", ".unseen"])
def test_the_gold_lines(language: str, part: str) -> None:
    """Precision is at least .95 and recall at least .85, on each half of the lines."""
    right = found = wanted = 0
    for line in (GOLD / f"{language}{part}.jsonl").read_bytes().splitlines():
        one = orjson.loads(line)
        zone = ZoneInfo(one["zone"])
        ours = {window[:2] for window in windows_of(one["text"], parse_timestamp(one["said_at"]), zone)}
        ends = [(window["from"], window["to"]) for window in one["windows"]]
        gold = {tuple(millis(moment, zone) for moment in both) for both in ends}
        right, found, wanted = right + len(ours & gold), found + len(ours), wanted + len(gold)
    assert wanted > 80
    assert (right / found >= 0.95, right / wanted >= 0.85) == (True, True), (right, found, wanted)


def millis(local: str, zone: ZoneInfo) -> int:
    return round(datetime.fromisoformat(local).replace(tzinfo=zone).timestamp() * 1000)


#: What expressions are made of, so that random texts have many of them.
PIECES = [
    *("last ", "next ", "this ", "on ", "in ", "since ", "for ", "the ", "Friday ", "March ", "May 31 ", "weekend "),
    *("2019 ", "90 years ", "3 days ago ", "at 5pm ", "9999 ", "31 ", "to ", "and ", "between ", "I will ", "have "),
    *("christmas ", "summer ", "end of ", "month ", "week ", "q3 ", "ſunday ", "٣ ", "24:00 ", "-", ",", ".", "\n"),
    *(
        "上",
        "下",
        "个",
        "周",
        "三",
        "十",
        "百",
        "月",
        "年",
        "底",
        "号",
        "点",
        "半",
        "前",
        "后",
        "从",
        "到",
        "开始",
        "了",
    ),
    *("九十年代", "二〇一九年", "29", "二月", "晚上", "每", "要", "國", "İ", "\u0000", "😀"),
]
TEXTS = st.one_of(st.text(max_size=200), st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
MOMENTS = st.datetimes(datetime(1990, 1, 2), datetime(2099, 12, 30), timezones=st.just(UTC)).map(
    lambda moment: round(moment.timestamp() * 1000)
)
ZONES = st.one_of(
    st.sampled_from(["America/Sao_Paulo", "Africa/Cairo", "Pacific/Apia", "Australia/Lord_Howe", "UTC"]).map(
        ZoneInfo
    ),
    st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)


@given(TEXTS, MOMENTS, ZONES)
def test_no_text_raises_and_windows_are_windows(text: str, said_at: int, zone: ZoneInfo) -> None:
    found = windows_of(text, said_at, zone)
    assert len(found) <= MOST_WINDOWS
    assert len({window[:3] for window in found}) == len(found)
    assert all(window.start < window.end and window.text in text for window in found)
    assert all(1990 <= datetime.fromtimestamp(window.start / 1000, zone).year < 2100 for window in found)
    assert found == windows_of(text, said_at, zone)
    assert all(may_have_times(window.text) for window in found)


def patterns() -> list[re.Pattern[str]]:
    found = [pattern for language in (english.RULES, chinese.RULES) for pattern, _ in language]
    found += [both.sentence_end for both in (english.ENGLISH, chinese.CHINESE)]
    return [*found, windows._PARTS, windows._WORDS, windows._NUMBERS, english_tense._MARKS, chinese_tense._MARKS]


@pytest.mark.parametrize("pattern", patterns(), ids=lambda pattern: pattern.pattern[:60])
def test_no_pattern_repeats_without_a_bound(pattern: re.Pattern[str]) -> None:
    """So a place of a text takes a bounded number of steps. `tests/streams/test_patterns.py` counts them."""
    without_classes = re.sub(r"\\.|\[[^\]]*\]", ".", pattern.pattern)
    assert not re.search(r"[*+]", without_classes)


def test_each_expression_is_looked_at_with_its_neighbourhood_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the text, the tense is read from at most `_NEAR` characters on both sides."""
    seen: list[int] = []

    def tense(before: str, words: str, after: str) -> bool:
        seen.append(max(len(before), len(after)))
        return False

    monkeypatch.setattr(windows, "ENGLISH", english.ENGLISH._replace(tense=tense))
    text = "on Monday we came " * 1800
    assert len(text) > 32_000
    assert shown(windows_of(text, SAID, OSLO)) == ["2026-03-09..2026-03-10 day"]
    assert max(seen) <= reader._NEAR


@pytest.mark.parametrize("module", [calendar, english_tense, chinese_tense, windows])
def test_examples(module: object) -> None:
    names = {"parse_timestamp": parse_timestamp, "iso": iso, "ZoneInfo": ZoneInfo}
    done = doctest.testmod(module, extraglobs=names)  # type: ignore[arg-type]
    assert (done.failed, done.attempted > 0) == (0, True)
