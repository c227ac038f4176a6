"""Statements in Chinese sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tables.search.found_statement import Found

#: What has one value at a time.
_HEADS: Final = (
    r"(?:电话|手机号码?|号码|邮箱|地址|住址|密码|验证码|名字|昵称|生日|年龄|体重|身高|车牌号?|公司|单位|职位|岗位|学校|专业"
    r"|截止日期|截止时间|截止日|期限|预算|价格|房租|工资|版本号?|负责人|房间号?|航班号?|车次|时间|日期|地点|老师|医生|老板"
    r"|经理|主管|账号|用户名|尺码|座位号?)"
)
_CHANGED: Final = (
    r"(?:改成了?|改为了?|改到了?|换成了?|换到了?|变成了?|变为|调整为|调整到|更新为|推迟到了?|提前到了?|延期到了?|延到了?"
    r"|挪到了?|调到了?|涨到了?|降到了?|升级到了?)"
)
_CLAUSE: Final = r"[^，。；,;！!？?（）()]"
_VALUE: Final = rf"(?P<value>{_CLAUSE}{{1,30}}?)(?=了?[吧啦呢哦的]?(?:[，。；,;！!？?（）()]|$))"
_COMPANY: Final = r"(?:公司|银行|医院|大学|学院|学校|集团|局|厂|研究所|研究院|事务所|出版社|报社|电视台)"
_ORGANISATION: Final = rf"(?P<value>{_CLAUSE}{{1,18}}{_COMPANY})"
_TIMES: Final = r"(?:现在|目前|已经|刚刚?|最近|今年|上个?[周月]|去年|上星期|后来|又|都|就|还|也){0,3}"
_OWNER: Final = r"(?:我们?的?|咱们?的?)?"
_RELATIVE: Final = (
    r"我(?P<key>爸爸?|妈妈?|姐姐?|哥哥?|弟弟?|妹妹?|老公|老婆|先生|太太|女儿|儿子|朋友|男朋友|女朋友|同事|室友|奶奶|爷爷|外婆"
    r"|外公)"
)
_PETS: Final = ("猫", "狗", "小猫", "小狗", "兔子", "鹦鹉")

#: Of things, which the group `key` names.
_OF_THINGS: Final = (
    re.compile(rf"(?P<key>{_OWNER}[^，。；,;是为叫]{{0,14}}{_HEADS}){_TIMES}(?:就?是|为|叫做?|[:：]){_VALUE}"),
    re.compile(rf"把(?P<key>{_CLAUSE}{{1,14}}?)(?:从{_CLAUSE}{{1,12}}?)?{_CHANGED}{_VALUE}"),
    re.compile(rf"(?P<key>{_CLAUSE}{{1,14}}?){_TIMES}{_CHANGED}{_VALUE}"),
    re.compile(rf"(?P<key>我们?家?的?(?:{'|'.join(_PETS)}))(?:的名字)?叫{_VALUE}"),
)
#: Of the speaker.
_OF_SPEAKER: Final = (
    ("住处", re.compile(rf"我们?{_TIMES}(?:住在|定居在?|(?:搬[到去进]了?)){_VALUE}")),
    ("单位", re.compile(rf"我{_TIMES}在{_ORGANISATION}(?:上班|工作|任职|实习)")),
    ("单位", re.compile(rf"我{_TIMES}(?:跳槽到了?|跳槽去了?|入职了?){_VALUE}")),
    ("年龄", re.compile(rf"我{_TIMES}满?(?P<value>\d{{1,3}}|[一二三四五六七八九十]{{1,3}})岁")),
    (
        "体重",
        re.compile(rf"我的?{_TIMES}体重{_TIMES}(?:是|有|降到了?|涨到了?)?(?P<value>[\d.]+\s*(?:公斤|斤|kg|千克))"),
    ),
)
#: Of a relative, whom the group `key` names.
_OF_OTHERS: Final = (
    ("住处", re.compile(rf"{_RELATIVE}{_TIMES}(?:住在|(?:搬[到去进]了?)){_VALUE}")),
    ("单位", re.compile(rf"{_RELATIVE}{_TIMES}在{_ORGANISATION}(?:上班|工作|任职)")),
)
_ATTRIBUTES: Final = re.compile(r"新的?|现在的|最新的?")
#: What held before, or would hold if, is no statement of what holds.
_ELSEWHEN: Final = re.compile(r"旧|以前|原来|曾经|如果|要是|时候|那年|当年|小时|想|打算|希望|\d{4}年")
#: Keys with these speak of something that another sentence names.
_PRONOUN: Final = re.compile(r"[其它他她这那谁哪您你]|什么")
_OPENING: Final = re.compile(r"^(?:对了|哦|嗯|那个|请记住|记住|记一下|更正一下|更新一下)[，,：:]?")
#: A sentence without any of these states nothing.
_CUE: Final = re.compile(rf"{_HEADS}|{_CHANGED}|住在|定居|搬[到去进]|岁|体重|叫|跳槽|入职|上班|工作|任职|实习")


def may_state(text: str) -> bool:
    """Return whether it is worth while to read the text. This is much cheaper than the rules."""
    return not text.isascii() and _CUE.search(text) is not None


def stated(sentence: str) -> Iterator[Found]:
    """Yield what the sentence states."""
    if not may_state(sentence) or _ELSEWHEN.search(sentence):
        return
    for clause in re.split(r"[，,]", _OPENING.sub("", sentence)):
        yield from _of_a_thing(clause) or _of_a_person(clause)


def _of_a_thing(clause: str) -> list[Found]:
    for rule in _OF_THINGS:
        found = rule.search(clause)
        if found and not _PRONOUN.search(found["key"]):
            own = "我" in found["key"] or "咱" in found["key"]
            about = _ATTRIBUTES.sub("", re.sub(r"[我咱们家的]", "", found["key"]))
            return [Found(f"{about}名字" if about in _PETS else about, found["value"], own)]
    return []


def _of_a_person(clause: str) -> list[Found]:
    for about, rule in _OF_OTHERS:
        if found := rule.search(clause):
            return [Found(f"{about} {found['key']}", _short(about, found["value"]), own=True)]
    for about, rule in _OF_SPEAKER:
        if found := rule.search(clause):
            return [Found(about, _short(about, found["value"]), own=True)]
    return []


def _short(about: str, value: str) -> str:
    """Return a value, or of a home the last of its names: 江苏南京 is 南京."""
    return re.sub(r"(?:那边|这边|附近|[市区县])$", "", value)[-2:] if about == "住处" else value
