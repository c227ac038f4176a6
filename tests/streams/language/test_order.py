"""Which questions ask for the first or the last occasion, and which count from an event. Precision before recall."""

from __future__ import annotations

import pytest

from streams.language.anchors import Anchor, Relation, anchor_of
from streams.language.order import MOST_WORDS, Occasion, Order, order_of

EARLIEST = (
    "When did I first visit Rome?",
    "What did I say the first time I met Anna?",
    "Tell me about the first time I went skiing",
    "Where did Tom and I first meet?",
    "When have I first heard of it?",
    "Which did I buy first, the piano or the violin?",
    "Which dog did Anna adopt first - Bo or Rex?",
    "What happened first, the move or the wedding?",
    "What was the earliest thing I told you about chess?",
    "我第一次去北京是什么时候？",
    "我首次参加马拉松是哪年？",
    "我最早是什么时候提到学钢琴的？",
    "第一次去北京的时候我住在哪里？",
)
LATEST = (
    "When was the last time I saw the dentist?",
    "When did I last call my mother?",
    "What did I most recently read?",
    "What is the latest price of the flat?",
    "What is Anna's newest phone number?",
    "my most recent visit to the dentist",
    "latest phone number of Anna",
    "我最近一次看牙医是什么时候？",
    "我上一次见到小李是在哪里？",
    "我上次去医院是因为什么？",
    "我最后一次抽烟是什么时候？",
    "房子最新的价格是多少？",
)
NEITHER = (
    # things, names and places
    "Did I say my name first or last?",
    "What is my first name?",
    "What is my last name?",
    "What was my first job?",
    "What did my first dog eat?",
    "When did Anna's first book come out?",
    "When did my parents give me my first console?",
    "Who took first place?",
    "Does Anna give first aid?",
    "Is Tom a first-time buyer?",
    "Was Tom a first time buyer?",
    "我的第一份工作是什么？",
    "我第一个老板叫什么？",
    "第一次世界大战是哪年开始的？",
    "最新款手机是什么？",
    "谁得了第一名？",
    # windows
    "What did I do last week?",
    "Where did I last summer go?",
    "Where did I go last summer?",
    "What did I do in the most recent months?",
    "我上一周做了什么？",
    "我上周去了哪里？",
    # other meanings
    "Did I like sushi at first?",
    "First of all, where do I live?",
    "How long did the trip last?",
    "How long did the trip last year last for?",
    "By when at the latest did I have to pay?",
    "At the latest, when did I pay?",
    "最后我们去了哪里？",
    "最近我看了什么书？",
    # what lies ahead
    "What is the earliest train to Bergen?",
    "What is the earliest I can arrive?",
    "When can I first visit the museum?",
    "我最早可以几点到？",
    "最早的航班是几点？",
    # statements, and both at once
    "This was the first time I cooked ramen.",
    "I saw Anna for the last time in May.",
    "今天是我第一次做拉面。",
    "In which order did I visit them, from earliest to latest?",
    "When did I first visit Rome, and when most recently?",
    "我第一次和最近一次去北京是什么时候？",
    "Where do I live?",
    "",
)


@pytest.mark.parametrize(
    ("question", "first"),
    [
        *((one, "earliest") for one in EARLIEST),
        *((one, "latest") for one in LATEST),
    ],
)
def test_these_ask_for_an_order(question: str, first: Occasion) -> None:
    found = order_of(question)
    assert found is not None
    assert found.first == first
    assert found.text in question


@pytest.mark.parametrize("question", NEITHER)
def test_these_ask_for_none(question: str) -> None:
    assert order_of(question) is None


def test_a_long_question_has_none() -> None:
    """Its other conditions say which occasion it is about."""
    short = "When did I first visit Rome" + " and Siena" * 5 + "?"
    assert order_of(short) == Order("earliest", "first visit")
    assert len(f"{short} please".split()) == MOST_WORDS + 1
    assert order_of(short.replace("?", " again?")) is None
    assert order_of("我第一次" + "去" * 26 + "哪？") is not None
    assert order_of("我第一次" + "去" * 28 + "哪？") is None


@pytest.mark.parametrize(
    ("question", "relation", "text"),
    [
        ("Where did I live before I moved to Oslo?", "before", "I moved to Oslo"),
        ("Before I moved to Oslo, where did I live?", "before", "I moved to Oslo"),
        ("Before I moved to Oslo where did I live?", "before", "I moved to Oslo"),
        ("Which car did I have until I bought the Volvo?", "before", "I bought the Volvo"),
        ("Where did I work prior to the merger?", "before", "the merger"),
        ("What did I eat after the wedding?", "after", "the wedding"),
        ("What did Tom do after moving to Bergen?", "after", "moving to Bergen"),
        ("After Anna's party, who had my keys?", "after", "Anna's party"),
        ("What did we do after Anna and Tom left?", "after", "Anna and Tom left"),
        ("What have I read since I started my job?", "after", "I started my job"),
        ("What did I eat while I was in Berlin?", "during", "I was in Berlin"),
        ("What did I eat while in Berlin?", "during", "in Berlin"),
        ("我搬到奥斯陆之前住在哪里？", "before", "我搬到奥斯陆"),
        ("搬家之前我住在哪里？", "before", "搬家"),
        ("搬家前我住在哪里？", "before", "搬家"),
        ("我结婚以后去了哪里旅行？", "after", "我结婚"),
        ("毕业后我去了哪家公司？", "after", "毕业"),
        ("自从我换工作以后读了什么书？", "after", "我换工作"),
        ("我在柏林的时候吃了什么？", "during", "我在柏林"),
        ("手术后医生说了什么？", "after", "手术"),
    ],
)
def test_these_count_from_an_event(question: str, relation: Relation, text: str) -> None:
    assert anchor_of(question) == Anchor(relation, text)


@pytest.mark.parametrize(
    "question",
    [
        # no clause
        "What did I do after all?",
        "Have I asked this before?",
        "Did we ever meet before?",
        "Where have I worked ever since?",
        "What did I do before that?",
        "我以前住在哪里？",
        "之前我说过什么？",
        "以后我们去哪里？",
        "后来我去了哪里？",
        "妈妈以前做什么工作？",
        # no certain event, or a time
        "What did I do after work?",
        "What did I eat after a long day?",
        "What did I do before 2019?",
        "What did I do before the weekend?",
        "三年以前我在哪里？",
        "很久以前我养过什么？",
        # plans, advice and habits
        "What should I pack before I go to Rome?",
        "What do I do before I sleep?",
        "Before I proceed, which version is current?",
        "What medicine have I to take before the surgery?",
        "What was my plan for after the wedding?",
        "What did I want to do after the exam next week?",
        "睡觉之前我应该做什么？",
        "手术前吃什么？",
        "结婚以后我要去哪里？",
        # other meanings
        "Who looked after the kids, did Tom?",
        "Who was named after my grandmother?",
        "Did I name my dog after my uncle?",
        "Who was before the judge?",
        "While I like tea, what did she like?",
        "什么时候去的？",
        "小时候我住在哪里？",
        "我的前夫叫什么？",
        # a statement
        "I moved after the wedding.",
        "",
    ],
)
def test_these_count_from_none(question: str) -> None:
    assert anchor_of(question) is None
