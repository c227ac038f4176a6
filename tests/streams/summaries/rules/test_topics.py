"""What was talked about, and in which turns."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from streams.summaries.rules.clustering import MOST_TURNS, clusters, products
from tests.streams.summaries.rules.talking import summary
from tests.support.making import axis, leaning


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
    assert [topic.title for topic in found] == ["学习世界历史", "宫保鸡丁", "黄山的门票"]
    assert found[1].sources == ("m4", "m5")


def test_english_turns_as_well() -> None:
    found = summary(
        "Hello there!",
        "A: Hi! How can I help?",
        "I've been learning to cook",
        "A: What did you make?",
        "I fixed my bike on Sunday",
        "A: Well done!",
        "I burnt the rice when I tried to cook dinner",
        "A: It happens.",
        "My sister moved to Leeds",
        "A: Nice.",
    ).topics
    assert [(topic.turns, topic.title) for topic in found] == [
        ((2, 4), "learning to cook"),
        ((3,), "bike"),
        ((5,), "sister"),
    ]


def test_there_are_at_most_five_those_that_most_is_said_about() -> None:
    said = [
        "I picked sour apples",
        "The mayor opened an iron bridge beside the old library of the town hall on Monday",
        "Castles fascinate my young nephew",
        "A grey donkey ate our hat",
        "Steam engines hiss",
        "My wooden flute needs repair",
        "Wild roses fill the garden",
    ]
    found = summary(*[line for one in said for line in (one, "A: ok")]).topics
    assert len(found) == 5
    assert (2,) in [topic.turns for topic in found]


def test_what_is_said_in_the_same_words_goes_together() -> None:
    """What only follows is a topic of its own, as long as there are few."""
    found = summary(
        "The harbour pilots went on strike",
        "A: I have read about it",
        "My violin lesson went badly",
        "A: What happened?",
        "Nobody knows what the harbour pilots want",
        "A: More pay",
        "A violin string broke in the lesson",
        "A: Oh no",
        "Nobody would rent us a tandem",
        "A: Why not?",
    ).topics
    assert [topic.turns for topic in found] == [(1, 3), (2, 4), (5,)]


@pytest.mark.parametrize(
    "said", ["你好！", "谢谢，再见", "Hi, nice to meet you!", "Thanks, see you tomorrow!", "???", "好"]
)
def test_courtesies_are_no_topic(said: str) -> None:
    assert summary(said, "A: 很高兴认识你 Glad to meet you!").topics == ()


def test_what_only_the_assistant_says_is_no_topic_unless_it_speaks_alone() -> None:
    assert summary("好", "A: 长城是中国古代的防御工程。").topics == ()
    assert [topic.title for topic in summary("A: 长城是中国古代的防御工程。").topics] == ["中国古代的防御工程"]


def test_titles_differ() -> None:
    titles = [topic.title for topic in summary(*["I repaired the old radio", "A: ok"] * 4).topics]
    assert titles == ["old radio"]


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("I'm maid of honour, and I love the man she picked", "maid of honour"),
        ("Yesterday we tried the new oven in our bakery, but nobody was pleased", "new oven in our bakery"),
        ("We finally decided to start planning a trip to Oslo", "planning a trip to Oslo"),
        ("I packed the tent and a stove, and that was it", "tent and a stove"),
        (
            "I am still reading the letters about the old mill of our village",
            "reading the letters about the old mill",
        ),
        ("昨天我去参观了一家陶瓷博物馆，感觉特别震撼", "陶瓷博物馆"),
        ("这几天搬家让我有些疲惫和烦躁", "疲惫和烦躁"),
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
    assert titles == ["planning a trip to Oslo", "harbour gate", "flute teacher"]


def test_a_name_that_is_only_called_is_no_topic_where_anything_else_is_named() -> None:
    (topic,) = summary("Guess what, Ruth, Nils came to the pottery class").topics
    assert topic.title == "pottery class"


def test_the_nearest_groups_become_one_until_there_are_as_few_as_topics() -> None:
    vectors = np.stack([axis(0), leaning(0, 7, 0.9), axis(1), axis(2), leaning(1, 7, 0.9)])
    assert clusters(vectors, [False] * 5) == [[0, 1], [2, 4], [3]]


def test_turns_that_are_apart_stay_apart_however_many() -> None:
    assert clusters(np.stack([axis(place) for place in range(8)]), [False] * 8) == [[place] for place in range(8)]


def test_of_two_turns_as_near_the_following_one_is_nearer() -> None:
    vectors = np.stack([axis(0), leaning(0, 1, 0.5**0.5), axis(1), axis(3)])
    assert clusters(vectors, [False, False, True, False]) == [[0], [1, 2], [3]]
    assert clusters(vectors, [False, True, False, False]) == [[0, 1], [2], [3]]


def test_of_very_many_turns_each_goes_where_it_is_nearest() -> None:
    places = [0, 0, 1, 2] * MOST_TURNS
    groups = clusters(np.stack([axis(place) for place in places]), [False] * len(places))
    assert sorted(len(group) for group in groups) == [MOST_TURNS, MOST_TURNS, 2 * MOST_TURNS]
    assert all(len({places[row] for row in group}) == 1 for group in groups)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="a C compiler writes on the stack")
def test_what_is_left_on_the_stack_is_no_warning(tmp_path: Path) -> None:
    (tmp_path / "stack.c").write_text(
        "void write_on_it(void) { volatile unsigned a[65536]; for (int i = 0; i < 65536; i++) a[i] = 0x7fa00000; }\n"
    )
    subprocess.run(["cc", "-O0", "-shared", "-fPIC", "-o", "stack.so", "stack.c"], cwd=tmp_path, check=True)
    stack = ctypes.CDLL(str(tmp_path / "stack.so"))
    for columns in range(1, 20):
        rows, mean = np.ones((7, columns), np.float32), np.ones(columns, np.float32)
        stack.write_on_it()
        assert products(rows, mean).tolist() == [columns] * 7
