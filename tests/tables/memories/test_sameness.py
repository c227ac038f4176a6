"""Which of two texts says nothing new."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tables.memories.sameness import in_lower_case, said, says_the_same
from tests.support.examples import examples
from tests.support.languages import LANGUAGES, NEGATIONS, sayings

OTHER_FACTS: Final = {
    "a number": [
        ("bees in Oslo: 45681", "bees in Oslo: 45257"),
        ("The invoice is due on 2027-03-14.", "The invoice is due on 2027-03-15."),
        ("My desk is 1.5 m wide", "My desk is 15 m wide"),
        ("It was -7 degrees in the shed", "It was 7 degrees in the shed"),
        ("The dose is .5 ml", "The dose is 5 ml"),
        ("The plot has 5² tiles", "The plot has 52 tiles"),
        ("I own two kayaks", "I own three kayaks"),
        ("会议改到九点", "会议改到十点"),
        ("我的工号是８８１２", "我的工号是８８２１"),
        ("部屋は３０２号室です", "部屋は３０３号室です"),
        ("제 방 번호는 417입니다", "제 방 번호는 471입니다"),
        ("Моя квартира 58", "Моя квартира 85"),
        ("غرفتي رقم ٤١٧", "غرفتي رقم ٤٧١"),
    ],
    "a unit": [
        ("The parcel weighs 3 kg", "The parcel weighs 3 lb"),
        ("It costs $40", "It costs €40"),
        ("The battery is at 20%", "The battery is at 20"),
        ("The plank is 6′ long", "The plank is 6″ long"),
    ],
    "a negation": [
        ("I eat shellfish", "I don't eat shellfish"),
        ("I can swim", "I can't swim"),
        ("I have a passport", "I have no passport"),
        ("我吃海鲜", "我不吃海鲜"),
        ("我还没结婚", "我结婚"),
        ("私は泳げます", "私は泳げません"),
        ("저는 우유를 마셔요", "저는 우유를 안 마셔요"),
        ("Ich esse Fisch.", "Ich esse keinen Fisch."),
        ("Como carne", "No como carne"),
        ("Я ем мясо", "Я не ем мясо"),
    ],
    "a name": [
        ("My sister is called Lena", "My sister is called Lina"),
        ("My doctor is Dr. Oh Park", "My doctor is Dr. Park"),
        ("My doctor is Hi Park", "My doctor is Park"),
        ("我的医生姓周", "我的医生姓邹"),
        ("Il s'appelle Rémi", "Il s'appelle Rémy"),
        ("Anna: I like rowing", "Bea: I like rowing"),
    ],
    "the order of names": [
        ("Olga beats Petra at chess", "Petra beats Olga at chess"),
        ("I lent Sam a drill", "Sam lent I a drill"),
        ("the dog chased the cat", "the cat chased the dog"),
        ("小王欠小李钱", "小李欠小王钱"),
        ("Der Hund beißt den Mann", "Den Hund beißt der Mann"),
    ],
    "a direction": [
        ("The rent went up", "The rent went down"),
        ("We drive from Bonn to Kiel", "We drive to Bonn from Kiel"),
        ("Turn left at the mill", "Turn right at the mill"),
        ("房租涨了", "房租跌了"),
    ],
    "a word of weight": [
        ("I have few friends here", "I have a few friends here"),
        ("My blood type is A", "My blood type is O"),
        ("I got a hepatitis A shot", "I got a hepatitis shot"),
        ("Anna might come", "Anna will come"),
        ("I liked rowing", "I like rowing"),
        ("I write C++", "I write C"),
        ("I write C#", "I write C"),
        ("我请他吃饭", "我他吃饭"),
        ("请他吃饭", "他吃饭"),
        ("你好像我哥哥", "像我哥哥"),
        ("那个人是我哥哥", "人是我哥哥"),
        ("Well-known actors", "Known actors"),
        ("Hello Kitty is on my mug", "Kitty is on my mug"),
        ("La quiero", "Quiero"),
        ("I want to please", "I want to"),
        ("She never said thank you", "She never said"),
    ],
    "a question": [
        ("Anna lives in Rome?", "Anna lives in Rome."),
        ("你喜欢猫吗", "你喜欢猫"),
        ("学生ですか", "学生です"),
    ],
    "who speaks": [("user: I like rowing", "assistant: I like rowing"), ("用户：我会画画", "助手：我会画画")],
    "an emoji": [("I feel 😀", "I feel 😡"), ("🐢🐢🐢", "🍉🍉🍉"), ("👋🏻", "👋🏿"), ("I feel :)", "I feel :(")],
    "every word": [
        ("Thanks!", "Hello!"),
        ("...", "!!!"),
        ("ฉันชอบแมว", "ฉันเกลียดฝน"),
        ("எனக்கு தேநீர் பிடிக்கும்", "என் அண்ணன் சென்னையில் வேலை செய்கிறார்"),
    ],
    "what is not embedded": [("row " * 400 + "north", "row " * 400 + "south")],
}

SAME: Final = {
    "case": [("my sister is called lena", "My Sister Is Called Lena"), ("МОЯ КВАРТИРА 58", "Моя квартира 58")],
    "punctuation": [
        ("My sister, Lena, rows.", "My sister Lena rows!"),
        ("I'm a **well-known** rower", "I am a “well known” rower…"),
        ("我对芒果过敏，很严重。", "我对芒果过敏很严重"),
        ("¡Vivo en Cádiz!", "Vivo en Cádiz"),
        ("do you like rowing?", "Do you like rowing"),
        ("你喜欢划船吗？", "你喜欢划船吗"),
    ],
    "white space": [
        ("I  row\ton\u00a0Sundays ", "I row on Sundays"),
        ("我 对 芒果 过敏", "我对芒果过敏"),
        ("It is 5 pm", "It is 5pm"),
    ],
    "full-width forms": [
        ("Ｍｙ　ｃｏｄｅ　ｉｓ　７４１", "My code is 741"),
        ("我的工号是８８１２。", "我的工号是8812"),
        ("ｶﾞﾗｽが好き", "ガラスが好き"),
    ],
    "digits of another script": [("غرفتي رقم ٤١٧", "غرفتي رقم 417")],
    "short forms": [
        ("I don't eat shellfish", "I do not eat shellfish"),
        ("I can’t swim", "I cannot swim"),
        ("It's my boat", "It is my boat"),
    ],
    "articles": [
        ("I bought a boat", "I bought the boat"),
        ("Ich habe einen Hund", "Ich habe den Hund"),
        ("Tengo un perro", "Tengo el perro"),
    ],
    "filler": [
        ("Hi, I row on Sundays, thanks!", "I row on Sundays"),
        ("Well, I row on Sundays", "I row on Sundays."),
        ("Oh I row on Sundays", "I row on Sundays."),
        ("Please remember that Lena rows", "Lena rows"),
        ("Could you please call Lena", "could you call Lena"),
        ("你好，我叫周敏。", "我叫周敏"),
        ("请记住我对芒果过敏", "我对芒果过敏"),
        ("嗯，我对芒果过敏啊，谢谢", "我对芒果过敏"),
        ("您住在哪里", "你住在哪里"),
        ("すみません、私は学生です", "私は学生だ"),
        ("안녕하세요, 저는 우유를 안 마셔요", "저는 우유를 안 마셔"),
        ("Hallo, ich esse bitte keinen Fisch, danke", "Ich esse keinen Fisch."),
        ("Hola, vivo en Cádiz, por favor", "vivo en Cádiz"),
        ("Привет, я не ем мясо, спасибо", "Я не ем мясо"),
    ],
    "a speaker's prefix": [
        ("User: I row on Sundays", "I row on Sundays"),
        ("用户：我对芒果过敏", "我对芒果过敏"),
        ("user: I row\nassistant: Noted", "User: I row.\nAssistant: noted!"),
    ],
    "nothing but filler": [("Thanks!", "thanks"), ("👍", "👍"), ("...", "..."), ("谢谢", "谢谢。")],
}


def _pairs(table: dict[str, list[tuple[str, str]]]) -> list[Any]:
    return [
        pytest.param(*pair, id=f"{kind} {place}") for kind, pairs in table.items() for place, pair in enumerate(pairs)
    ]


@pytest.mark.parametrize(("one", "other"), _pairs(OTHER_FACTS))
def test_texts_that_differ_in_what_matters_are_no_copies(one: str, other: str) -> None:
    assert not says_the_same(one, other)
    assert not says_the_same(other, one)
    assert says_the_same(one, one)


@pytest.mark.parametrize(("one", "other"), _pairs(SAME))
def test_texts_that_differ_in_form_alone_are_copies(one: str, other: str) -> None:
    assert says_the_same(one, other)
    assert says_the_same(other, one)


@pytest.mark.parametrize(("one", "other"), _pairs(SAME))
def test_the_quick_look_lets_all_copies_through(one: str, other: str) -> None:
    assert said(one).may_be_in(in_lower_case(other))
    assert said(other).may_be_in(in_lower_case(one))


ENGLISH: Final = (
    "{a} owes {b} {n} euros",
    "On the {n}th I meet {a} and {b}",
    "{a} is {n} cm taller than {b}",
    "I like {a} more than {b}, by {n} points",
)
CHINESE: Final = ("{a}欠{b}{n}元", "{n}号我先见{a}再见{b}", "{a}比{b}高{n}厘米", "我喜欢{a}胜过{b}，多{n}分")
NAMES: Final[dict[tuple[str, ...], tuple[str, ...]]] = {
    ENGLISH: ("Lena", "Tom", "Xiu", "Okoro"),
    CHINESE: ("周敏", "小李", "阿强", "王芳"),
}
UNITS: Final = {
    "euros": "dollars",
    "th": "nd",
    "cm": "mm",
    "points": "goals",
    "元": "角",
    "号": "月",
    "厘米": "毫米",
    "分": "次",
}
FORMS: Final[tuple[Callable[[str], str], ...]] = (
    str.lower,
    str.upper,
    lambda text: f"{text}.",
    lambda text: f"{text}!!",
    lambda text: f"  {text}\n",
    lambda text: text.replace(" ", "  "),
    lambda text: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text),
    lambda text: f"“{text}”",
)
PREFIXES: Final = ("{}", "User: {}", "USER:{}", "用户：{}")
FILLERS: Final[dict[tuple[str, ...], tuple[str, ...]]] = {
    ENGLISH: (
        "Hi, {}",
        "{}, thanks!",
        "By the way, {}",
        "{}, please",
        "Well, {}",
        "{} thanks",
        "Hello! {}. Thank you.",
    ),
    CHINESE: ("你好，{}", "{}，谢谢", "嗯，{}", "请记住，{}", "{}啊", "请记住{}", "麻烦您了，{}"),
}


@st.composite
def sentences_said(draw: st.DrawFn) -> tuple[tuple[str, ...], str, str, str, int]:
    """The sentences of a language, one of them, two names and a number."""
    sentences = draw(st.sampled_from((ENGLISH, CHINESE)))
    sentence = draw(st.sampled_from(sentences))
    one, other = draw(st.permutations(NAMES[sentences]))[:2]
    return sentences, sentence, one, other, draw(st.integers(1, 99_999))


@given(sentences_said(), st.integers(1, 99_999), st.data())
@examples(300)
def test_one_changed_fact_makes_another_memory_in_whatever_form(
    drawn: tuple[tuple[str, ...], str, str, str, int], other_number: int, data: st.DataObject
) -> None:
    sentences, sentence, one, other, number = drawn
    text = sentence.format(a=one, b=other, n=number)
    unit = next(unit for unit in UNITS if unit in sentence)
    changed = {
        "number": sentence.format(a=one, b=other, n=other_number if other_number != number else number + 1),
        "sign": sentence.format(a=one, b=other, n=-number),
        "decimals": sentence.format(a=one, b=other, n=f"{number}.5"),
        "order": sentence.format(a=other, b=one, n=number),
        "name": sentence.format(a=next(n for n in NAMES[sentences] if n not in (one, other)), b=other, n=number),
        "unit": sentence.replace(unit, UNITS[unit]).format(a=one, b=other, n=number),
        "negation": f"It is not true that {text}" if sentences is ENGLISH else text.replace(one, f"{one}没", 1),
        "emoji": f"{text} 🙃",
        "more": f"{text}, in Kiel" if sentences is ENGLISH else f"{text}在海边",
    }
    form, filler = data.draw(st.sampled_from(FORMS)), data.draw(st.sampled_from(FILLERS[sentences]))
    for kind, different in changed.items():
        assert not says_the_same(text, form(filler.format(different))), kind


@given(sentences_said(), st.lists(st.sampled_from(FORMS), max_size=2), st.data())
@examples(300)
def test_another_form_of_the_same_is_a_copy(
    drawn: tuple[tuple[str, ...], str, str, str, int], forms: list[Callable[[str], str]], data: st.DataObject
) -> None:
    sentences, sentence, one, other, number = drawn
    text = copy = sentence.format(a=one, b=other, n=number)
    if data.draw(st.booleans()):
        copy = copy.replace(",", "").replace("，", "")
    if data.draw(st.booleans()):
        copy = data.draw(st.sampled_from(FILLERS[sentences])).format(copy)
    for form in forms:
        copy = form(copy)
    copy = data.draw(st.sampled_from(PREFIXES)).format(copy)
    assert says_the_same(text, copy)
    assert says_the_same(copy, text)
    assert said(text).may_be_in(in_lower_case(copy))


@pytest.mark.parametrize("language", LANGUAGES)
def test_in_each_language_no_fact_is_lost_and_copies_are_merged(language: str) -> None:
    """Forty statements: a digit changed, a word left out, a negation put in; and each in all other forms."""
    told, _ = sayings(language)
    texts = set(told)
    for text in told:
        assert not any(says_the_same(text, other) for other in texts - {text})
        for changed in others_of(text, NEGATIONS[language]):
            assert not says_the_same(text, changed), changed
    copies = [(text, prefix.format(form(text))) for text in told for form in FORMS for prefix in PREFIXES]
    lost = [(text, copy) for text, copy in copies if not says_the_same(text, copy)]
    assert len(lost) <= len(copies) / 20, lost


def others_of(text: str, negation: str) -> Iterator[str]:
    """Texts that say something else: one for each digit, and for each gap between words, or between characters."""
    for found in re.finditer(r"\d", text):
        yield f"{text[: found.start()]}{(int(found[0]) + 1) % 10}{text[found.end() :]}"
    yield f"{text} 🙃"
    words = text.split()
    if len(words) > 2:
        for place in range(1, len(words)):
            yield " ".join([*words[:place], negation, *words[place:]])
    else:
        for place in range(2, len(text) - 1):
            yield text[:place] + negation + text[place:]


@given(st.text(max_size=60), st.text(max_size=60))
@examples(300)
def test_any_text_says_what_it_says_and_the_rule_has_no_sides(one: str, other: str) -> None:
    assert says_the_same(one, one)
    assert says_the_same(one, other) == says_the_same(other, one)
