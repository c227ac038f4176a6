"""Chinese sentences in which users tell of themselves. See `personal.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from streams.language import reading_zh
from streams.language.personal_fact import Fact, Part, key_of
from tables.search import chinese_statements


def _of_class(letter: str) -> str:
    words = (word for word, known in reading_zh.LEXICON.letter_of.items() if known == letter)
    return "|".join(sorted(words, key=len, reverse=True))


_RELATIONS: Final = _of_class("R")
_SURNAMES: Final = _of_class("N")
_OCCUPATIONS: Final = (
    r"(?:医生|护士|教师|老师|律师|工程师|程序员|设计师|厨师|司机|农民|工人|会计|销售|快递员|理发师|警察|军人|记者|编辑|翻译"
    r"|公务员|店长|学生|大学生|研究生|博士生|高中生|画家|作家|演员|歌手|导游|模特|摄影师|经理|主管|总监|老板|教授|科学家"
    r"|研究员|分析师|顾问|飞行员|空姐|乘务员|保安|教练|运动员|音乐人|音乐家|舞者|创业者|自由职业者|产品经理|全职妈妈|全职太太)"
)
_CUE: Final = re.compile(r"[我咱俺]|用户|提醒|时间|日期|截止|会议")
_UNREAL: Final = re.compile(
    r"如果|假如|要是|以前|曾经|原来|当年|那时|小时候|希望|想象|也许|可能|不再|[他她你您]们?[说想觉问]|别人说"
)
_OPENING: Final = (
    r"(?:^|[，,；;：:、])(?:(?:对了|其实|另外|还有|而且|但是?|不过|所以|因为|请?记住|记一下|那个|嗯|哦|啊)[，,：:]?)?"
)
_HOW: Final = (
    r"(?:最近|现在|目前|今年|已经|平时|平常|一直|从小就?|真的|其实|比较|更加?|最|很|非常|特别|尤其|超级|超|挺|蛮|也|还|都|就|又|可"
    r"|不太|并|个人|本人|一向|通常|自己){0,4}"
)
_I: Final = rf"{_OPENING}(?:我们?|咱们?|俺){_HOW}"
_MY: Final = r"(?:我们?|咱们?|俺)(?:家)?的?"
_NAME: Final = (
    rf"(?:(?:{_SURNAMES})[\u4e00-\u9fff]{{1,2}}"
    rf"|[小阿老](?![师板人家婆公孩时姐伙学区说店])[\u4e00-\u9fff]{{1,2}}|[A-Z][a-z]{{1,15}})"
)
_END: Final = r"(?=[，。,；;！!、\s的]|$)"
_VAGUE: Final = r"(?:[你您这那它他她其啥]|什么|一下|上了?[。，]|的是|看到|听到|和你|跟你|与你|为你|吗|呢|就好)"

_ABOUT: Final = (
    (
        "名字",
        re.compile(
            rf"(?:{_I}叫做?|{_OPENING}(?:请|就|以后|可以|你可以|大家|大家都|朋友们?都?)?叫我)(?:{_NAME})(?<![了过着的]){_END}"
            rf"|{_OPENING}{_MY}(?:名字|姓名)(?:叫做?|是)(?![你您他她什我])[\u4e00-\u9fffA-Za-z]{{1,12}}{_END}"
        ),
    ),
    (
        "职业",
        re.compile(
            rf"{_I}(?:是|当|成为)(?:一?[名个位])?[^，。,；;的我你]{{0,6}}{_OCCUPATIONS}(?=[，。,；;！!、\s]|$)"
        ),
    ),
    ("职业", re.compile(rf"{_I}(?:从事|做)[^，。,；;]{{1,12}}(?:工作|行业)")),
    ("单位", re.compile(rf"{_I}(?:刚)?(?:辞职了|离职了|失业了|被裁了)")),
    (
        "学业",
        re.compile(
            rf"{_I}(?:在[^，。,；;]{{1,14}})?(?:读|念|上)(?:大[一二三四]|研[一二三]|高[一二三]|初[一二三]|本科|硕士|博士|研究生)"
        ),
    ),
    ("住处", re.compile(rf"{_I}在[^，。,；;我你]{{1,10}}(?:生活|定居|居住)")),
    (
        "家乡",
        re.compile(
            rf"(?:{_I}(?:来自|出生于|出生在|老家在|家乡在)|{_OPENING}{_MY}(?:老家|家乡|籍贯)(?:是|在))[^，。,；;你]"
        ),
    ),
    ("婚姻", re.compile(rf"{_I}(?:已婚|未婚|单身|离婚了|结婚了|订婚了|退休了)(?=[，。,；;！!、\s了]|$)")),
    (
        "属性",
        re.compile(
            rf"{_OPENING}{_MY}(?:生日|电话|手机号?|号码|联系电话|邮箱|邮箱地址|地址|住址|身高|体重|年龄|血型|星座|学历|专业|职业|职位|单位"
            r"|公司|性格)(?:号码?|地址)?(?:是|为|在|叫|[:：])[^，。,；;你]"
        ),
    ),
)
_ATTRIBUTE: Final = re.compile(
    r"生日|电话|手机|号码|邮箱|地址|住址|身高|体重|年龄|血型|星座|学历|专业|职业|职位|单位|公司|性格"
)
_HEALTH: Final = re.compile(
    rf"{_I}(?:对[^，。,；;你]{{1,14}}过敏|有[^，。,；;你]{{0,8}}(?:过敏|糖尿病|高血压|哮喘|鼻炎|胃病)|吃素|(?:从来?不|不能|不)(?:吃|喝|抽)(?!了)[^，。,；;你什]"
    r"|乳糖不耐)"
)
_LIKES: Final = (
    re.compile(
        rf"{_I}(?:不太?)?(?:喜欢|热爱|酷爱|偏爱|钟爱|讨厌|爱吃|爱喝|爱看|爱听|爱玩|爱好|害怕|受不了|擅长|习惯|偏好|更愿意)(?!{_VAGUE})"
        r"(?P<what>[^，。,；;！!？?]{1,40})"
    ),
    re.compile(
        rf"{_I}对(?!{_VAGUE})(?P<what>[^，。,；;你我]{{1,14}})(?:很|非常|特别|比较|挺)?(?:感兴趣|着迷|有兴趣)"
    ),
    re.compile(rf"{_OPENING}{_MY}(?:最喜欢的|最爱的)?(?P<what>爱好|兴趣爱好|兴趣|偶像)(?:是|有|包括)"),
    re.compile(rf"{_I}喜欢的(?P<what>[^，。,；;你]{{1,8}}?)(?:是|叫)"),
)
_RELATED: Final = (
    re.compile(rf"(?:^|[，,；;])(?P<name>{_NAME})是我们?家?的?(?P<who>{_RELATIONS}){_END}"),
    re.compile(rf"{_MY}(?P<who>{_RELATIONS})(?:的名字)?是(?P<name>{_NAME}){_END}"),
    re.compile(
        rf"{_MY}(?P<who>{_RELATIONS})(?:的名字|名字)?(?:名?叫做?)(?![你您他她它我什])(?P<name>[\u4e00-\u9fffA-Za-z·]{{1,8}}){_END}"
    ),
    re.compile(
        rf"{_MY}(?P<who>{_RELATIONS})(?P<name>{_NAME})(?=[，。,；;！!、\s]|也|很|是|在|最|去|要|说|喜|今|明|昨|和|的|住|每|特|都|$)"
    ),
)
_FAMILY: Final = re.compile(rf"{_I}(?:养了?|有)(?:一|两|二|三|四|\d)?[个只条位对](?P<who>{_RELATIONS}){_END}")
_OF_OTHERS: Final = re.compile(
    rf"{_OPENING}{_MY}(?P<who>{_RELATIONS})(?:[他她])?(?:的?(?P<what>生日|电话|电话号码?|联系电话|手机号?|邮箱|邮箱地址|单位|公司|职业|工作|性格|爱好|学历|老家|家乡"
    r"|身高|体重|年龄)(?:是|为|叫|在)|(?P<does>喜欢|爱|住在|是一?[名个位]|在[^，。,；;]{1,10}(?:上班|工作)))"
)
_TASK: Final = re.compile(
    r"预约|约了|约好|会议|面试|考试|航班|高铁|火车|飞机|复诊|复查|手术|截止|开会|出差|提醒我|要去|要参加|将要|打算|计划|准备|订了|预订|报名"
    r"|交报告|婚礼|聚会|的时间(?:是|为|定在|改到)|时间定在|得去|必须|需要|要交|要提交|要完成|旅行|旅游|搬家|演出|比赛|演讲|答辩"
)
_PAST: Final = re.compile(r"昨天|前天|上周|上个?月|去年|刚刚?|之前|了[。！!，,]?$|过了|去过|已经")
_NO_TASK: Final = re.compile(r"不(?!过|好意思|久|同|错|要忘)|别(?!忘|让我忘|人|的)|没|取消|无需")
_CANCELLED: Final = re.compile(
    r"(?P<what>会议|预约|面试|考试|航班|手术|婚礼|聚会|旅行|旅游|演出|比赛|演讲|答辩)(?:已经?|都|被|又){0,2}取消"
    r"|取消了?[^，。,；;不没]{0,8}?(?P<other>会议|预约|面试|考试|航班|手术|婚礼|聚会|旅行|旅游|演出|比赛|演讲|答辩)"
)
_QUESTION: Final = re.compile(
    r"[吗么][。！!~…]?$|是不是|有没有|会不会|能不能|要不要|可不可以|对不对|喜不喜欢|谁|哪[里儿]"
)
_TO_DO: Final = re.compile(r"提醒我|别让我忘|待办[:：]|别忘了(?!我)")
_WHEN: Final = re.compile(r"^(?P<key>[^，。,；;]{2,20}?)的(?:时间|日期|截止日期)(?:是|为|定在|改到|改成)")
_NO_VALUE: Final = re.compile(r"当前|[这那某一]个?家|里面|一起")
#: Words for one relation.
_SAME: Final = {
    **dict.fromkeys(("妈", "母亲", "老妈", "娘"), "妈妈"),
    **dict.fromkeys(("爸", "父亲", "老爸", "爹"), "爸爸"),
    **dict.fromkeys(("妻子", "太太", "媳妇", "爱人"), "老婆"),
    **dict.fromkeys(("丈夫", "先生"), "老公"),
    **dict.fromkeys(("领导", "老板"), "上司"),
}
_OF_RELATIVE: Final = re.compile(rf"{_MY}(?:{_RELATIONS})")


def may_tell(sentence: str) -> bool:
    """Return whether the sentence may tell something. This is much cheaper than the rules."""
    return _CUE.search(sentence) is not None


def facts(sentence: str) -> Iterator[Fact]:
    """Yield what the sentence tells. 用户喜欢茶 is read as 我喜欢茶."""
    if sentence.startswith("用户"):
        sentence = f"我{sentence[2:]}"
    bare = sentence.rstrip("。！!；; ")
    if _QUESTION.search(bare):
        return
    if (gone := _CANCELLED.search(bare)) and not _UNREAL.search(bare):
        yield Fact(Part.TASKS, ("取消", gone["what"] or gone["other"]), ends=True)
        return
    if when := _WHEN.match(bare):
        yield Fact(Part.TASKS, ("时间", when["key"]), dated=True)
    elif _TASK.search(bare) and not _PAST.search(bare) and not _NO_TASK.search(bare):
        yield Fact(Part.TASKS, key_of("事", bare), dated=not _TO_DO.search(bare))
    if _UNREAL.search(bare):
        return
    yield from _about(bare)
    yield from _people(bare)
    for rule in _LIKES:
        if found := rule.search(bare):
            yield Fact(Part.PREFERENCES, key_of("喜欢", found["what"]))
            break


def _about(bare: str) -> Iterator[Fact]:
    for one in chinese_statements.stated(bare):
        if one.own and one.about in ("住处", "单位", "年龄", "体重") and not _NO_VALUE.search(one.value):
            yield Fact(Part.ABOUT, (one.about,))
    for key, rule in _ABOUT:
        if (found := rule.search(bare)) and not _OF_RELATIVE.search(found[0]):
            attribute = _ATTRIBUTE.search(found[0])
            yield Fact(Part.ABOUT, (attribute[0] if key == "属性" and attribute else key,))
    if _HEALTH.search(bare):
        yield Fact(Part.ABOUT, key_of("健康", bare))


def _people(bare: str) -> Iterator[Fact]:
    for rule in _RELATED:
        if found := rule.search(bare):
            yield Fact(Part.PEOPLE, (found["name"],))
            return
    if found := _OF_OTHERS.search(bare):
        what = (found["what"] or found["does"]).removeprefix("联系")[:2]
        yield Fact(Part.PEOPLE, (_SAME.get(found["who"], found["who"]), what), rank=1)
    elif found := _FAMILY.search(bare):
        yield Fact(Part.PEOPLE, ("有", found["who"]))
