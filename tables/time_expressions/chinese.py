"""The rules of Chinese time expressions."""

from __future__ import annotations

import re
from typing import Final

from tables.time_expressions import chinese_readings as readings
from tables.time_expressions.chinese_tense import happens_ahead
from tables.time_expressions.lunar_days import LUNAR_HOLIDAYS
from tables.time_expressions.reader import Language, Rule, compiled

_WORDS: Final = {
    "n": r"(?<![几数多好零〇一二两三四五六七八九十百0-9第每])(?P<n>[0-9]{1,3}|[一二两三四五六七八九十百]{1,4}|半)",
    "unit": r"(?P<unit>分钟|个?小时|个?钟头|天|周|个?星期|个?礼拜|个?月|年)",
    "week": r"(?:个?(?:周|星期|礼拜))",
    "weekday": r"(?P<weekday>[一二三四五六日天末])",
    "no_count": r"(?![次个遍回趟条篇份天两三四五六七八九十])(?!天气|起来)",
    "way": r"(?<![马早晚一每])(?P<way>上上|下下|上|这|本|下)",
    "year": (
        r"(?P<year>(?<![0-9])(?:19|20)[0-9]{2}年|(?<![0-9])[09][0-9]年|[一二][零〇九][零〇一二三四五六七八九]{2}年"
        r"|大前年|大后年|前年|去年|今年|明年|后年)"
    ),
    "month": r"(?<![0-9每个十半.叫])(?P<month>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])月份?(?![饼亮经])",
    "day": r"(?P<day>[12][0-9]|3[01]|0?[1-9]|三十一?|二?十[一二三四五六七八九]?|[一二三四五六七八九])(?:[号日])",
    "no_place": r"(?![楼线店桌房门院员球车厢仓机选铺柜床馆座厅])",
    "third": r"(?P<third>初|底|末|上旬|中旬|下旬)",
    "season": r"(?P<season>[春夏秋冬])(?!节)[天季]?",
    "part": r"(?P<part>凌晨|清晨|早晨|一早|早上|上午|中午|下午|傍晚|晚上|夜里|半夜|深夜)",
    "hour": r"(?P<hour>[0-9]{1,2}|二?十[一二三四]?|[零一二两三四五六七八九])",
    "minute": r"(?P<minute>半|一刻|三刻|[0-9]{1,2}分?|[二三四五]?十[一二三四五六七八九]?分?)?",
    # 国庆 is a given name as well.
    "holiday": r"(?P<holiday>"
    + "|".join((*readings.HOLIDAYS, *LUNAR_HOLIDAYS))
    + r"|(?<![\u4e00-\u9fff])国庆|(?<=[年在到等过])国庆)",
}

RULES: Final[tuple[Rule, ...]] = tuple(
    (compiled(template, _WORDS), read)
    for template, read in (
        (
            "(?<![的先])(?P<name>大前天|大后天|前天|昨[天日]|今[天儿]|明[天日儿]|后天)(?!的努力|努力|培养|养成|性)",
            readings.named_day,
        ),
        ("(?P<name>前|昨|今|明|后)(?P<part>晚(?!上好)上?|早|夜)", readings.part_of_named_day),
        ("{way}{week}{weekday}{no_count}", readings.weekday_of_week),
        ("{way}{week}(?!岁|年|末|[日天](?!气))", readings.week),
        (
            "(?<![每两几数各多0-9叫姓])(?<!(?<![周期拜])[一二三四五六七八九十])(?:周|星期|礼拜){weekday}{no_count}",
            readings.weekday,
        ),
        ("{way}个?月{third}?(?![饼亮光])", readings.month),
        ("{way}个?月{day}{no_place}", readings.day_of_that_month),
        ("{year}(?![级份后])", readings.year),
        ("{year}的?{season}", readings.season),
        ("(?P<now>今|这个){season}(?:天|季)?", readings.season),
        ("(?:{year}的?)?(?P<half>上|下)半年", readings.half_of_year),
        ("(?:{year}的?)?(?:第?(?P<quarter>[一二三四1-4])季度|[qQ](?P<quarter_>[1-4]))", readings.quarter),
        ("(?:{year}的?年?|(?<!大)年)(?P<border>初(?![一二三四五六七八九十])|底|末)", readings.border_of_year),
        ("(?:{year}的?)?{month}{third}?", readings.month_of_year),
        ("(?:{year}的?)?{month}{day}{no_place}", readings.calendar_date),
        (
            "(?<![0-9])(?P<year>(?:19|20)[0-9]{2})[-/.](?P<number>[0-9]{1,2})[-/.](?P<day>[0-9]{1,2})(?![0-9])",
            readings.written,
        ),
        ("月(?P<third>初|底|末)", readings.third_of_this_month),
        ("(?<![第0-9月.\\-一二三四五六七八九十a-zA-Z]){day}{no_place}", readings.nth),
        ("(?:{year}的?)?{holiday}(?!快乐|安康|树|礼物|歌|联欢|晚会|档|月饼|粽)", readings.holiday),
        ("(?:上世纪|二十世纪|20世纪)?(?:九十|90)年代", readings.nineties),
        ("{n}{unit}(?:以|之)?前(?![面后进往])", readings.ago),
        ("{n}{unit}(?:以|之)?后(?![面来退])", readings.ahead),
        ("{n}{unit}(?:以|之)?内", readings.within),
        ("(?P<way>过去|最近|近|未来|接下来|今后)的?这?{n}{unit}", readings.run),
        ("{n}{unit}(?:以来|来(?=[,，我他她你一]))", readings.so_far),
        ("(?<!还有)(?<!只剩)(?<!还剩)(?<!再过){n}{unit}了(?![解结断])", readings.so_far),
        ("{part}?{hour}(?:点钟|点整|点)(?!建议|看法|时间|意见|儿|心){minute}", readings.clock),
        ("(?<![0-9:比]){part}?(?P<hour>[0-9]{1,2})[:：](?P<minute>[0-9]{2})(?![0-9:])", readings.clock),
        ("{part}(?!好|茶)", readings.part_of_day),
    )
)

_FROM: Final = re.compile(r"(?:自从|从|自)$")
_ON: Final = re.compile(r"(?:的时候)?(?:开始|以来|起(?!床)|到现在|至今|直到现在)")
_SINCE: Final = re.compile(r"(?:以来|至今|到现在)")


def _since(before: str, words: str, after: str) -> bool:
    return bool(_SINCE.match(after) or (_FROM.search(before[-2:]) and _ON.match(after)))


CHINESE: Final = Language(
    rules=RULES,
    tense=happens_ahead,
    habits=re.compile("每|通常|一般都|一般会|一般在|总是|经常|平时|往往|从来"),
    again=re.compile(r"(?:每|每个|隔|各|哪|某)$"),
    sentence_end=re.compile(r"[。！？!?\n；;]"),
    beside=re.compile(r"[,，]?[的 ]?"),
    between=re.compile(r"(?:到|至|[-–—~～])"),
    both=re.compile("和"),
    opened=re.compile("在"),
    since=_since,
)
