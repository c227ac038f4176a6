"""What was talked about, and in which turns."""

from __future__ import annotations

import pytest

from tests.streams.summaries.rules.talking import summary


def test_turns_about_the_same_are_one_topic_under_what_names_it() -> None:
    """In the order in which they came up, each with its turns, wherever in the day they are."""
    found = summary(
        "你好！",
        "A: 你好，想聊什么？",
        "我最近在学习世界历史",
        "A: 可以听听播客。",
        "昨天我做了一道宫保鸡丁",
        "A: 听起来很香。",
        "世界历史的教材有点难懂",
        "A: 多做笔记。",
        "我想周末去爬黄山",
        "A: 注意安全。",
        "黄山的门票要预约",
        "A: 是的。",
    ).topics
    assert [topic.turns for topic in found] == [(2, 4), (3,), (5, 6)]
    assert [topic.title for topic in found] == ["世界历史", "宫保鸡丁", "黄山"]
    assert found[1].sources == ("m4", "m5")


def test_english_turns_as_well() -> None:
    found = summary(
        "Hello there!",
        "A: Hi! How can I help?",
        "I bought a new rice cooker",
        "A: What did you make with the rice cooker?",
        "I fixed my bike on Sunday",
        "A: Well done! What was broken on the bike?",
        "The rice cooker burnt our dinner",
        "A: It happens.",
        "Then the bike broke again",
        "A: Nice.",
    ).topics
    assert [topic.turns for topic in found] == [(2, 4), (3, 5)]
    assert "rice cooker" in found[0].title
    assert "bike" in found[1].title


def test_there_are_at_most_five_those_that_most_is_said_about() -> None:
    names = ("apple pie", "iron bridge", "grey donkey", "steam engine", "wooden flute", "rose garden", "chess club")
    said = [
        line
        for name in names
        for line in (
            f"Can you help me with the {name}?",
            f"A: What about the {name}?",
            f"Our {name} needs a new plan",
        )
    ]
    found = summary(*said).topics
    assert len(found) == 5
    assert [topic.turns for topic in found] == sorted(topic.turns for topic in found)


def test_what_is_said_in_the_same_words_goes_together() -> None:
    found = summary(
        "The harbour pilots went on strike",
        "A: I have read about it",
        "My violin lesson went badly",
        "A: What happened?",
        "Nobody knows what the harbour pilots want",
        "A: More pay",
        "A violin string broke in the lesson",
        "A: Oh no",
    ).topics
    assert (1, 3) in [topic.turns for topic in found]
    assert not {1, 3} & {turn for topic in found if "violin" in topic.title for turn in topic.turns}


def test_two_phrases_of_one_turn_are_one_topic() -> None:
    (topic,) = summary("I put the old radio beside the lamp and the clock", "A: ok").topics
    assert topic.turns == (1,)


@pytest.mark.parametrize(
    "said", ["你好！", "谢谢，再见", "Hi, nice to meet you!", "Thanks, see you tomorrow!", "???", "好"]
)
def test_courtesies_are_no_topic(said: str) -> None:
    assert summary(said, "A: 很高兴认识你 Glad to meet you!").topics == ()


def test_what_only_the_assistant_says_is_no_topic_unless_it_speaks_alone() -> None:
    assert summary("好", "A: 长城是中国古代的防御工程。").topics == ()
    assert [topic.title for topic in summary("A: 长城是中国古代的防御工程。").topics] == ["防御工程"]


def test_titles_differ() -> None:
    titles = [topic.title for topic in summary(*["I repaired the old radio", "A: ok"] * 4).topics]
    assert titles == ["old radio"]


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("I'm maid of honour, and I love the man she picked", "maid of honour"),
        ("Yesterday we tried the new oven in our bakery, but nobody was pleased", "new oven in our bakery"),
        ("We finally decided to start planning a trip to Oslo", "trip"),
        ("I packed the tent and a stove, and that was it", "tent"),
        (
            "I am still reading the letters about the old mill of our village",
            "old mill of our village",
        ),
        ("昨天我去参观了一家陶瓷博物馆，感觉特别震撼", "陶瓷博物馆"),
        ("昨天客厅的吊灯突然灭了", "客厅的吊灯"),
    ],
)
def test_a_topic_is_called_by_a_phrase_that_names_something_not_by_a_clause(said: str, title: str) -> None:
    (topic,) = summary(said, "A: ok").topics
    assert topic.title == title


@pytest.mark.parametrize(
    "said", ["Thanks, Ruth!", "That makes sense", "I feel so much better", "我也觉得很不错", "心情好多了"]
)
def test_what_names_nothing_is_no_topic(said: str) -> None:
    assert summary(said, "A: ok").topics == ()


def test_a_word_that_one_turn_says_is_no_topic_where_there_are_three_others() -> None:
    said = [
        "I am planning a trip to Oslo",
        "We met at the harbour gate",
        "I saw a donkey",
        "My flute teacher moved away",
    ]
    titles = [topic.title for topic in summary(*[line for one in said for line in (one, "A: ok")]).topics]
    assert titles == ["trip", "harbour gate", "flute teacher"]


def test_a_name_that_is_only_called_is_no_topic_where_anything_else_is_named() -> None:
    (topic,) = summary("Guess what, Ruth, Nils came to the pottery class").topics
    assert topic.title == "pottery class"


@pytest.mark.parametrize(
    "said",
    [
        "说件气人的事，有个公众号把我的画裁掉了签名",
        "我喜欢每周五晚上把画稿备份到书房那块蓝色硬盘里",
        "栗子我买了一大包，现在手上全是糖",
        "交稿是11月20日，一共三十二页，现在画到第九页",
        "这两袋大米我三天就吃完了",
    ],
)
def test_no_topic_begins_with_a_measure_word_or_is_a_number(said: str) -> None:
    titles = [topic.title for topic in summary(said, "A: 好").topics]
    assert not {"件气人的事", "块蓝色硬盘", "一大包", "一共三十二页", "袋大米"}.intersection(titles)
    assert not any(title[0] in "件块包页袋一二两三" for title in titles)


def test_a_topic_that_comes_up_again_keeps_all_its_turns() -> None:
    found = summary(
        "阳台的番茄长虫了，怎么办？",
        "A: 可以用肥皂水喷叶子。",
        "那我试试。我弟弟的婚礼定在六月",
        "A: 恭喜。",
        "番茄喷了两次，虫子没了",
        "A: 太好了。",
    ).topics
    assert next(topic.turns for topic in found if "番茄" in topic.title) == (1, 3)


@pytest.mark.parametrize(
    ("said", "word"),
    [
        (("냉장고 소리가 너무 시끄러워", "A: 냉장고는 언제부터요?", "냉장고가 어제부터 그래"), "냉장고"),
        (
            ("Die Tomaten haben Flecken", "A: Sind die Tomaten im Freien?", "ja, die Tomaten stehen im Garten"),
            "Tomaten",
        ),
        (("La lavadora hace ruido", "A: ¿La lavadora está nivelada?", "la lavadora es muy vieja"), "lavadora"),
    ],
)
def test_other_languages_have_topics_too(said: tuple[str, ...], word: str) -> None:
    assert any(word in topic.title for topic in summary(*said).topics)
