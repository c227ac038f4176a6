"""What Chinese time expressions mean: a function for each kind of them."""

from __future__ import annotations

from datetime import date
from typing import Final

from tables.time_expressions import calendar
from tables.time_expressions.calendar import Span, Unit
from tables.time_expressions.lunar_days import LUNAR_HOLIDAYS, lunar_holiday
from tables.time_expressions.reader import Found, Hours, Reading, by_tense, only

_DIGITS: Final = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_DAYS: Final = {"大前": -3, "前": -2, "昨": -1, "今": 0, "明": 1, "后": 2, "大后": 3}
_YEARS: Final = {"大前年": -3, "前年": -2, "去年": -1, "今年": 0, "明年": 1, "后年": 2, "大后年": 3}
_STEPS: Final = {"上上": -2, "上": -1, "这": 0, "本": 0, "下": 1, "下下": 2}
_WEEKDAYS: Final = {**{char: place for place, char in enumerate("一二三四五六日")}, "天": 6}
_UNITS: Final[dict[str, Unit]] = {
    "分钟": "minute",
    "小时": "hour",
    "钟头": "hour",
    "天": "day",
    "周": "week",
    "星期": "week",
    "礼拜": "week",
    "月": "month",
    "年": "year",
}
_SEASONS: Final = {"春": "spring", "夏": "summer", "秋": "autumn", "冬": "winter"}
_THIRDS: Final = {"初": "early", "底": "end", "末": "end", "上旬": "early", "中旬": "mid", "下旬": "late"}
#: First hour and the hour after the last, of the parts of a day.
_PARTS: Final = {
    **dict.fromkeys(("凌晨", "半夜"), (0, 6)),
    **dict.fromkeys(("清晨", "早晨", "一早", "早上", "上午", "早"), (6, 12)),
    "中午": (11, 13),
    "下午": (12, 18),
    "傍晚": (17, 19),
    **dict.fromkeys(("晚上", "夜里", "深夜", "晚", "夜"), (18, 24)),
}
#: Months and days of holidays. Those by the moon are in `lunar_days`.
HOLIDAYS: Final = {
    "元旦": (1, 1),
    "情人节": (2, 14),
    "妇女节": (3, 8),
    "愚人节": (4, 1),
    "劳动节": (5, 1),
    "儿童节": (6, 1),
    "教师节": (9, 10),
    "国庆节": (10, 1),
    "万圣节": (10, 31),
    "平安夜": (12, 24),
    "圣诞节": (12, 25),
    "圣诞": (12, 25),
    "跨年夜": (12, 31),
}


def _number(said: str) -> int:
    """Return the number of digits, or of characters up to 999. Raises `ValueError` for others, such as 三四."""
    if said.isdigit() and said.isascii():
        return int(said)
    total, digit = 0, 0
    for char in said:
        if char in "十百":
            total += (digit or 1) * (10 if char == "十" else 100)
            digit = 0
        elif digit:
            raise ValueError(f"no number: {said}")
        else:
            digit = _DIGITS[char]
    return total + digit


def _count(found: Found) -> tuple[int, Unit] | None:
    """Return a number of units. Half of one is written in smaller ones."""
    said, unit = found.said("n"), _UNITS[found.said("unit").removeprefix("个")]
    if unit == "month" and not found.said("unit").startswith("个"):
        return None  # 三月 is March
    if said != "半":
        return _number(said), unit
    halves: dict[Unit, tuple[int, Unit]] = {"year": (6, "month"), "month": (15, "day"), "hour": (30, "minute")}
    return halves.get(unit)


def _year(found: Found) -> int | None:
    said = found.said("year")
    if not said or said in _YEARS:
        return found.today.year + _YEARS[said] if said else None
    digits = "".join(char if char.isdigit() and char.isascii() else str(_DIGITS[char]) for char in said.rstrip("年"))
    if len(digits) == 2:
        return int(digits) + (1900 if digits[0] == "9" else 2000)
    return int(digits)


def _step(found: Found) -> int:
    return _STEPS[found.said("way")]


def _third(month: Span, said: str) -> Span:
    return calendar.part_of_month(month, _THIRDS[said]) if said else month


def named_day(found: Found) -> Reading:
    return only(calendar.day_from(found.today, _DAYS[found.said("name")[:-1]]))


def part_of_named_day(found: Found) -> Reading:
    """Read 今晚 and 明早."""
    first, after = _PARTS[found.said("part").removesuffix("上")]
    day = only(calendar.day_from(found.today, _DAYS[found.said("name")]))
    return day._replace(hours=Hours(first, after, alone=True, part=True))


def week(found: Found) -> Reading:
    return only(calendar.week(found.today, _step(found)))


def weekday_of_week(found: Found) -> Reading:
    if found.said("weekday") == "末":
        return only(calendar.weekend(found.today, _step(found)))
    return only(calendar.weekday(found.today, _WEEKDAYS[found.said("weekday")], _step(found)))


def weekday(found: Found) -> Reading:
    """Read 周五 and 周末."""
    if found.said("weekday") == "末":
        return by_tense(lambda today: [calendar.weekend(today, step) for step in (-1, 0, 1)])
    which = _WEEKDAYS[found.said("weekday")]
    return by_tense(lambda today: calendar.weekdays_around(today, which))


def month(found: Found) -> Reading:
    """Read 上个月 and 下个月底."""
    there = calendar.month_from(found.today, _step(found))
    return only(_third(there, found.said("third")))


def day_of_that_month(found: Found) -> Reading:
    first = calendar.month_from(found.today, _step(found)).start.date()
    return only(calendar.day(first.replace(day=_number(found.said("day")))))


def third_of_this_month(found: Found) -> Reading:
    return only(_third(calendar.month_from(found.today, 0), found.said("third")))


def year(found: Found) -> Reading | None:
    which = _year(found)
    return None if which is None else only(calendar.year(which))


def season(found: Found) -> Reading:
    which = _year(found)
    return only(calendar.season(found.today.year if which is None else which, _SEASONS[found.said("season")]))


def half_of_year(found: Found) -> Reading:
    return only(calendar.half(_year(found) or found.today.year, 1 if found.said("half") == "上" else 2))


def quarter(found: Found) -> Reading:
    which = _number(found.said("quarter") or found.said("quarter_"))
    return only(calendar.quarter(_year(found) or found.today.year, which))


def border_of_year(found: Found) -> Reading:
    """Read 年底 and 明年年初."""
    part = "early" if found.said("border") == "初" else "end"
    return only(calendar.part_of_year(_year(found) or found.today.year, part))


def month_of_year(found: Found) -> Reading:
    """Read 三月, 十月中旬 and 2019年5月."""
    which, third = _number(found.said("month")), found.said("third")
    if year := _year(found):
        return only(_third(calendar.month(year, which), third))
    return by_tense(lambda today: [_third(calendar.month(today.year + step, which), third) for step in (-1, 0, 1)])


def calendar_date(found: Found) -> Reading:
    month, day = _number(found.said("month")), _number(found.said("day"))
    if year := _year(found):
        return only(calendar.day(date(year, month, day)))
    return by_tense(lambda today: calendar.dates_around(today, month, day))


def written(found: Found) -> Reading:
    return only(calendar.day(date(*(int(found.said(name)) for name in ("year", "number", "day")))))


def nth(found: Found) -> Reading:
    """Read 15号."""
    day = _number(found.said("day"))
    return by_tense(lambda today: calendar.days_of_month_around(today, day))


def holiday(found: Found) -> Reading | None:
    if (name := found.said("holiday")) in LUNAR_HOLIDAYS:
        return _lunar(name, _year(found))
    month, day = HOLIDAYS.get(found.said("holiday")) or HOLIDAYS["国庆节"]
    if year := _year(found):
        return only(calendar.day(date(year, month, day)))
    return by_tense(lambda today: calendar.dates_around(today, month, day))


def _lunar(name: str, year: int | None) -> Reading | None:
    if year is None:
        return by_tense(lambda today: lunar_holiday(name, range(today.year - 1, today.year + 2)))
    days = lunar_holiday(name, range(year, year + 1))
    return only(days[0]) if days else None


def nineties(found: Found) -> Reading:
    return only(calendar.years(1990, 1999))


def _distant(found: Found, sign: int) -> Reading | None:
    count = _count(found)
    return None if count is None else only(calendar.distant(found.now, sign * count[0], count[1]))


def ago(found: Found) -> Reading | None:
    return _distant(found, -1)


def ahead(found: Found) -> Reading | None:
    """Read 三天后. In a story of the past, it is not counted from now."""
    return None if found.ahead is False else _distant(found, 1)


def _lasting(found: Found, sign: int) -> Reading | None:
    count = _count(found)
    return None if count is None else only(calendar.lasting(found.now, sign * count[0], count[1]))


def within(found: Found) -> Reading | None:
    return None if found.ahead is False else _lasting(found, 1)


def run(found: Found) -> Reading | None:
    """Read 过去三年 and 未来三天."""
    return _lasting(found, -1 if found.said("way") in ("过去", "最近", "近") else 1)


def so_far(found: Found) -> Reading | None:
    """Read 三年了."""
    return _lasting(found, -1)


def _hour(said: int, part: str) -> int:
    """Return the hour of 24 that a part of the day makes of an hour: 下午 3 is 15, 晚上 12 is midnight (24)."""
    if part in ("下午", "傍晚", "晚上") or (part in ("夜里", "深夜") and said > 5):
        return 24 if said == 12 and part != "下午" else said + 12 * (said < 12)
    if part == "中午":
        return said + 12 * (said < 10)
    return said % 12 if part in ("凌晨", "半夜") else said


def clock(found: Found) -> Reading | None:
    """Read 下午三点半 and 14:30. A lone 三点 may as well be three points."""
    part, said = found.said("part"), found.said("hour")
    hour = _hour(_number(said), part)
    sure = part or said.isdigit() or found.said("minute") or "点钟" in found.match[0]
    return Reading(hours=Hours(hour, hour + 1, alone=bool(sure))) if hour <= 24 else None


def part_of_day(found: Found) -> Reading:
    first, after = _PARTS[found.said("part")]
    return Reading(hours=Hours(first, after, alone=False, part=True))
