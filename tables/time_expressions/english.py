"""The rules of English time expressions."""

from __future__ import annotations

import re
from typing import Final

from tables.time_expressions import english_readings as readings
from tables.time_expressions.english_tense import happens_ahead
from tables.time_expressions.reader import Language, Rule, compiled

_MONTHS: Final = (
    "january|february|march|april|may|june|july|august|september|october|november|december"
    r"|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\.?"
)
_WORDS: Final = {
    "b": r"(?<![\w'’$€£#./:-])(?=\w)",
    "e": r"(?![\w]|['’](?!s\b)|[-/.:][0-9])",
    "n": r"(?P<n>[0-9]{1,3}|" + "|".join(sorted(readings.NUMBERS, key=len, reverse=True)) + ")",
    "unit": r"(?P<unit>minute|min|hour|hr|day|week|month|year|yr)s?",
    "weekday": r"(?P<weekday>(?:mon|tues|wednes|thurs|fri|satur|sun)day)",
    "a_weekday": r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|tues?|wed|thu|thurs?|fri|sat|sun)\.?)",
    "short_weekday": r"(?P<weekday>mon|tues?|wed|thu|thurs?|fri|sat)",
    "months": _MONTHS,
    "month": f"(?P<month>{_MONTHS})",
    "time": r"[0-9]{1,2}(?::[0-9]{2})?",
    "year": r"(?P<year>(?:19|20)[0-9]{2})",
    "day": r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?",
    "nth": r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)",
    "way": r"(?P<way>last|this|next)",
    "on": r"(?:(?:on|in|by|until|till|before|since|from|starting|for|between|through|during|around) )?",
    "in": r"(?:in|by|until|till|before|since|from|during|around|through|throughout|between)",
    "part": r"(?P<part>morning|afternoon|evening|night)",
    "season": r"(?P<season>spring|summer|autumn|fall|winter)",
    "holiday": r"(?P<holiday>"
    + "|".join(readings.HOLIDAYS).replace("years", "year['’]?s").replace("valentines", "valentine['’]?s")
    + ")",
    "decade": r"(?:(?:in|during|since) )?the (?:early |late |mid(?: |-))?",
    "clock": (
        r"(?:(?P<at>at|around|by|before|until|till|from|between|since) (?:about |around )?)?(?P<hour>[0-9]{1,2})"
    ),
    "a_year": r"(?: (?:of )?(?P<year>(?:19|20)[0-9]{2}))?",
    "to": r"(?: to | and | until | till | through | ?[-–] ?)",
    "early": r"(?:(?P<early>early|mid|late)(?: |-))?",
    "border": r"(?P<border>beginning|start|middle|end)",
}

RULES: Final[tuple[Rule, ...]] = tuple(
    (compiled(f"{{b}}(?:{template}){{e}}", _WORDS), read)
    for template, read in (
        ("(?:the )?day before yesterday", readings.distant_day(-2)),
        ("(?:the )?day after tomorrow", readings.distant_day(2)),
        ("yesterday", readings.distant_day(-1)),
        ("today", readings.distant_day(0)),
        ("tomorrow|tmrw?", readings.distant_day(1)),
        ("tonight|this {part}|(?P<way>last) night", readings.this_part),
        ("{way} (?P<period>week|weekend|month|year)(?! of\\b)", readings.calendar_unit),
        ("the {unit} (?P<side>before|after) (?:last|next)", readings.one_further),
        ("{on}{way} {weekday}", readings.weekday_of_week),
        ("{on}{way} {short_weekday}", readings.weekday_of_week),
        ("{on}(?:this |the )?(?P<way>past|coming) {weekday}", readings.near_weekday),
        ("{on}{weekday}(?: {part})? (?:of )?{way} week", readings.weekday_of_week),
        ("{way} week,? (?:on )?{weekday}(?: {part})?", readings.weekday_of_week),
        (
            "{on}{weekday}(?! (?:before last|after next)\\b)(?! (?:morning|afternoon|evening|night)s)",
            readings.weekday,
        ),
        ("(?:on|by|until|till|since) {short_weekday}", readings.weekday),
        ("{n} {unit} ago", readings.ago),
        ("{n} {unit} from (?:now|today)", readings.in_a_while),
        ("in (?:about )?{n} {unit}(?: time)?", readings.in_a_while),
        ("(?:in )?half an? (?P<whole>year|hour)(?: (?P<side>ago))?", readings.half),
        ("for (?:about |almost |nearly |over |the (?:last|past) )?{n} {unit}", readings.for_so_long),
        (
            "(?:(?P<in>in|over|during|for|within) )?(?:the|this|these|my|our) "
            "(?P<way>last|past|next|coming|following) (?:{n} )?{unit}",
            readings.run,
        ),
        ("{on}{year}-(?P<number>[0-9]{1,2})-(?P<day>[0-9]{1,2})", readings.written),
        ("{on}(?P<first>[0-9]{1,2})(?P<mark>[./])(?P<second>[0-9]{1,2})(?P=mark){year}", readings.numbered),
        ("{on}{year}/(?P<number>[0-9]{1,2})/(?P<day>[0-9]{1,2})", readings.written),
        ("{on}(?:{a_weekday},? )?{month} {day}(?:,? {year})?", readings.calendar_date),
        ("{on}(?:{a_weekday},? )?(?:the )?{day} (?:of )?{month}(?:,? {year})?", readings.calendar_date),
        (
            "(?:from |between )?{day}{to}(?P<last>[0-9]{1,2}) {month}(?:,? {year})?",
            readings.days_of_month,
        ),
        ("(?:from |between )?{month} {day} ?[-–] ?(?P<last>[0-9]{1,2})(?:,? {year})?", readings.days_of_month),
        (
            "(?:on|by|until|till|before|since|from) the {nth}(?! [a-z]{0,9}(?:floor|time|place|row|page|of)\\b)",
            readings.nth,
        ),
        ("{in} {early}{month}(?:,? (?:of )?{year})?", readings.month),
        ("(?:{in} )?(?P<early>early|mid|late)(?: |-){month}(?:,? (?:of )?{year})?", readings.month),
        ("(?:{in} )?{month},? (?:of )?{year}", readings.month),
        ("(?:(?:on|by|until|since) )?(?:the )?{nth} (?:of )?{way} month", readings.day_of_that_month),
        ("{way} {month}", readings.month),
        ("(?:from|between) {month}{to}(?P<last>{months})(?:,? {year})?", readings.months),
        ("(?:(?:in|at|by|until|since) )?(?:the )?{border} of {month}(?: {year})?", readings.month),
        ("(?:(?:in|at|by|until|since) )?the {border} of (?:the |{way} )(?P<period>month|year)", readings.border),
        ("(?:{in} )?(?:the )?(?P<half>first|second) half of (?:{year}|(?:the |{way} )year)", readings.half_of_year),
        ("(?:{in} )?q(?P<quarter>[1-4]) (?:of )?{year}|{in} q(?P<quarter_>[1-4])", readings.quarter),
        (
            "(?:back )?(?:{in}|of) (?:(?:early|mid|late)(?: |-))?{year}(?! (?:people|dollars|euros|pounds)\\b)",
            readings.year,
        ),
        ("(?:from |between )?{year}{to}(?P<last>(?:19|20)[0-9]{2})", readings.years),
        ("{decade}(?:19|['’])?(?:90s|nineties)", readings.decade),
        ("{decade}(?P<decade>20[0-9]0)s", readings.decade),
        (
            "(?:{in} |over )?(?:the |{way} ){season}{a_year}(?! (?:of|camp|house|solstice|olympics|equinox)\\b)",
            readings.season,
        ),
        ("(?:{in} )?{season} (?:of )?{year}", readings.season),
        ("(?:at|on|over|during|for|until|before|by|since) the weekend", readings.the_weekend),
        (
            "(?:(?:at|on|over|for|until|before|by|since) |{way} ){holiday}{a_year}"
            "(?! (?:tree|card|market|dinner|song|party|present|gift)s?\\b)",
            readings.holiday,
        ),
        ("{clock}(?::(?P<minute>[0-9]{2}))? ?(?P<half>[ap](?:m|\\.m\\.?))", readings.clock),
        (
            "(?:from |between )?(?P<hour>{time}) ?(?P<half>[ap]m)?{to}(?P<last>{time}) ?(?P<last_half>[ap]m)",
            readings.hours,
        ),
        ("{clock}:(?P<minute>[0-9]{2})", readings.clock),
        ("(?:at|by|around|about) (?:about |around )?(?P<hour>[0-9]{1,2})(?: o['’]?clock)?", readings.bare_hour),
        ("(?:at )?(?:noon|midday)", readings.noon),
        ("(?:(?:in|on) )?(?:the )?(?:early |late )?{part}", readings.part_of_day),
    )
)

_SINCE: Final = re.compile(r"\bsince (?:about |the |early )?$", re.ASCII | re.IGNORECASE)


def _since(before: str, words: str, after: str) -> bool:
    return words.lower().startswith("since") or _SINCE.search(before[-20:]) is not None


ENGLISH: Final = Language(
    rules=RULES,
    tense=happens_ahead,
    habits=compiled(
        r"\b(?:every|each|usually|always|normally|often|weekly|daily|generally|typical|typically|whenever"
        r"|weekdays?|(?:morning|afternoon|evening|night)s|(?:mon|tues|wednes|thurs|fri|satur|sun)days)\b",
        {},
    ),
    again=compiled(r"\b(?:every|each|most|any|some|other) $", {}),
    sentence_end=re.compile(r"(?<![ap]\.m)(?<!\b[DMS][rst])(?<!\bMrs)\.(?=\s|$)|[!?\n。！？]"),
    beside=compiled(r",? ?(?:(?:at|on|in|of|around|about|by) )?(?:the )?", {}),
    between=compiled(r" ?[-–] ?| (?:to|until|till|through) ", {}),
    both=compiled(r" and ", {}),
    opened=compiled(r"\bbetween\b", {}),
    since=_since,
)
