"""What was talked about, and in which turns."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.summaries import TITLE_CHARS
from streams.rules.summary.clustering import MOST_TURNS, clusters
from tests.streams.rules.summary.talking import summary
from tests.support.making import axis, leaning


def test_turns_about_the_same_are_one_topic_under_what_tells_most() -> None:
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
    assert [topic.title for topic in found] == ["我最近在学习世界历史", "昨天我做了一道宫保鸡丁", "我想周末去爬黄山"]
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
        ((2, 4), "I've been learning to cook"),
        ((3,), "I fixed my bike on Sunday"),
        ((5,), "My sister moved to Leeds"),
    ]


def test_there_are_at_most_five_those_that_most_is_said_about() -> None:
    said = [
        "I picked sour apples",
        "The mayor opened an iron bridge beside the old library of the town hall on Monday",
        "Castles fascinate my nephew",
        "A donkey ate our hat",
        "Steam engines hiss",
        "My flute needs repair",
        "Roses fill the garden",
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
    assert [topic.title for topic in summary("A: 长城是中国古代的防御工程。").topics] == ["长城是中国古代的防御工程"]


def test_titles_differ() -> None:
    said = "I repaired the old radio"
    titles = [topic.title for topic in summary(*[said, "A: ok"] * 4).topics]
    assert titles == [said]


def test_a_long_clause_is_cut_at_a_word_that_can_end_it() -> None:
    (topic,) = summary("I was most interested in the exhibitions about the ancient culture of the islands").topics
    assert topic.title == "I was most interested in the exhibitions"
    assert len(topic.title) <= TITLE_CHARS


def test_a_list_is_not_cut_after_an_item() -> None:
    (topic,) = summary("I packed the tent and a stove, warm socks, and some rope for the weekend trip").topics
    assert topic.title == "I packed the tent and a stove"


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
