"""Statements of one value: what they are about, what they say, and which one holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tables.search.stated import Stated
from tables.search.statements import MOST, Statement, statements

#: Pairs of texts, of which the second one updates the first.
UPDATES = [
    ("I live in Bergen.", "I just moved to Oslo, and I love it"),
    ("Ann: I live in Bergen", "Ann: I have moved to Oslo"),
    ("I work at Google as an engineer", "I joined Meta last month!"),
    ("I study at Oxford", "I transferred to Cambridge"),
    ("I'm 30 years old", "I turned 31 yesterday"),
    ("I weigh 80 kg", "I weigh 76 kg now"),
    ("My phone number is 555-1234", "My new phone number is 555-9999."),
    ("my email is ann@old.example", "No, my email is ann@new.example"),
    ("Our address is 12 High Street", "FYI our address is now 3 Low Road"),
    ("my sister lives in Bergen", "My sister moved to Trondheim last week"),
    ("My dog's name is Rex", "Sorry, my dog's name is Max"),
    ("the deadline is 12 March", "The deadline moved from 12 March to 3 April"),
    ("The deadline is 12 March.", "We have pushed the deadline to 5 May because of Tom"),
    ("the rent is 900 euros", "The rent was raised to 950 euros"),
    ("The wifi password is hunter2", "The wifi password has been changed to swordfish"),
    ("My appointment is on Friday", "My appointment was moved to Monday"),
    ("remember that the tone for the shop is friendly", "Update this: the tone for the shop is now formal"),
    ("我住在青岛", "我上个月搬到了上海"),
    ("我住在江苏南京", "我现在住在苏州市"),
    ("我今年30岁", "我今年31岁了"),
    ("我的手机号是13800001111", "我的手机号换成了13900002222"),
    ("截止日期是3月12日", "截止日期改到4月3日了"),
    ("会议时间是上午十点", "我们把会议时间改到下午三点"),
    ("我妹妹住在北京", "我妹妹搬到了南京"),
    ("我在招商银行上班", "我跳槽到了字节"),
    ("我家的狗叫旺财", "我家的狗叫来福"),
]
#: Texts that state nothing of this kind.
NOTHING = [
    "Which version is it?",
    "The weather is nice",
    "my wife is a doctor",
    "My plan is to run",
    "The price is great",
    "the meeting was moved",
    "I live in hope",
    "I joined a gym",
    "My old phone number was 555-1234",
    "My previous address was 9 Oak Road",
    "The deadline was 3 April",
    "When I moved to Bergen in 2010, it rained",
    "I would be happier if I moved to Paris",
    "We moved to Kubernetes",
    "Before I moved to Oslo I was in Bergen",
    "In 2010 I joined Microsoft",
    "We turned 3 corners",
    "I weigh 2 options",
    "我5岁的时候学钢琴",
    "如果我入职阿里就好了",
    "2010年我搬到上海",
    "我以前的手机号是13800001111",
    "the flight is delayed",
    "他的名字叫张三",
    "我将要参加的会，它的持续时间是三个周。",
    "你的电话是多少？",
    "我在北京上班",
    "",
]
#: Pairs of texts that are about something else each.
APART = [
    ("I live in Oslo", "my sister lives in Bergen"),
    ("Ann: I live in Oslo", "Bob: I live in Bergen"),
    ("The deadline is 12 March", "The project deadline is 3 April"),
    ("my sister's phone number is 5551", "my phone number is 5552"),
    ("我住在青岛", "我妹妹住在北京"),
    ("截止日期是3月12日", "会议日期是4月3日"),
]
#: Pairs of texts that say the same.
ALIKE = [
    ("I live in Oslo", "we still live in Oslo, you know"),
    ("I moved to Oslo last week", "I live in Oslo"),
    ("the deadline is 3 April", "The deadline moved to 3 April"),
    ("我住在江苏南京", "我住在南京市"),
]


def only(text: str) -> Statement:
    (found,) = statements(text)
    return found


@pytest.mark.parametrize(("old", "new"), UPDATES)
def test_both_are_about_the_same_and_say_something_else(old: str, new: str) -> None:
    assert only(old).key == only(new).key
    assert only(old).value != only(new).value


@pytest.mark.parametrize("text", NOTHING)
def test_what_states_nothing(text: str) -> None:
    assert statements(text) == []


@pytest.mark.parametrize(("one", "other"), APART)
def test_what_is_not_about_the_same(one: str, other: str) -> None:
    assert only(one).key != only(other).key


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_what_says_the_same(one: str, other: str) -> None:
    assert only(one) == only(other)


def test_only_some_statements_of_a_text_are_kept() -> None:
    text = " ".join(f"the price for line {number} is {number} euros." for number in range(9))
    assert len(statements(text)) == MOST


@given(st.text(alphabet="I moved to Osl.!?:\n is my the 我搬到了是把改", max_size=400))
def test_any_text_is_read(text: str) -> None:
    assert len(statements(text)) <= MOST
    assert statements(text) == statements(text)


def test_an_assistants_words_are_not_the_users() -> None:
    """A text has the user's words first. Where speakers are named, each speaks of himself."""
    assert statements("tell me a story\nI live in Paris. My dog's name is Rex.") == []
    assert len(statements("hello\nThe deadline is 12 March")) == 1, "it is nobody's"
    found = statements("Ann: I live in Oslo\nBob: I live in Paris")
    assert [sorted(one.key) for one in found] == [["@ann", "hom"], ["@bob", "hom"]]


def test_white_space_of_any_length_is_one_blank() -> None:
    assert only("the   deadline\t\tmoved" + " " * 280 + "to  3 April") == only("the deadline moved to 3 April")


def stated(*texts: str, at: Sequence[int] | None = None) -> Stated:
    return Stated.of([[one.word for one in statements(text)] for text in texts], at or range(len(texts)))


def pairs(given: Stated) -> dict[int, int]:
    updates = given.updates(np.ones(9, np.bool_))
    return dict(zip(updates.older.tolist(), updates.newer.tolist(), strict=True))


def test_the_newest_statement_updates_all_others_of_another_value() -> None:
    texts = ("I live in Bergen", "hello", "I live in Oslo", "the rent is 900 euros", "I live in Turin")
    assert pairs(stated(*texts)) == {0: 4, 2: 4}


def test_time_decides_and_not_the_place() -> None:
    assert pairs(stated("I live in Bergen", "I live in Oslo", at=[9, 3])) == {1: 0}


def test_what_holds_again_updates_what_held_between() -> None:
    assert pairs(stated("I live in Bergen", "I live in Oslo", "I live in Bergen")) == {1: 2}


def test_a_memory_does_not_update_itself() -> None:
    assert pairs(stated("I live in Bergen. Sorry, my email is a@b.example. I live in Oslo")) == {}
    assert pairs(stated()) == pairs(stated("hi")) == {}


def test_only_rows_that_are_allowed_are_compared() -> None:
    given = stated("I live in Oslo", "I live in Bergen", "I live in Turin")
    found = given.updates(np.array([True, True, False]))
    assert (found.older.tolist(), found.newer.tolist()) == ([0], [1])


def test_of_two_updates_of_a_memory_the_newest_counts() -> None:
    both = "I live in Bergen. The rent is 900 euros"
    assert pairs(stated(both, "the rent is 950 euros", "I live in Oslo")) == {0: 2}
    assert pairs(stated(both, "I live in Oslo", "the rent is 950 euros")) == {0: 2}


def test_statements_of_exchanges_come_after_those_of_memories() -> None:
    memories, said = stated("hi", "I live in Bergen"), stated("I live in Oslo", at=[7])
    together = memories.followed_by(said, 2)
    assert pairs(together) == {1: 2}
    assert together.said_at.tolist() == [1, 7]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 20)), max_size=30))
def test_as_pair_by_pair(given: list[tuple[int, int, int]]) -> None:
    """By hand: for each key, the newest (of equally old ones the last) against each other one."""
    words = [[key << 24 | value] for key, value, _ in given]
    times = [at for *_, at in given]
    found = Stated.of(words, times).updates(np.ones(len(given), np.bool_))
    expected = {}
    for row, (key, value, _) in enumerate(given):
        newest = max((at, other) for other, (k, _, at) in enumerate(given) if k == key)[1]
        if given[newest][1] != value:
            expected[row] = newest
    assert dict(zip(found.older.tolist(), found.newer.tolist(), strict=True)) == expected
    assert np.all(np.diff(found.older) > 0)
