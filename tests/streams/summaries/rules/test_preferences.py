"""What the user likes and wants."""

from __future__ import annotations

import pytest

from tests.streams.summaries.rules.talking import summary

STATED = [
    "我喜欢简洁的回答",
    "我偏好使用中文",
    "我不太喜欢应酬",
    "我画画的时候喜欢放大提琴",
    "我最喜欢的季节是秋天",
    "我对摄影很感兴趣",
    "我希望你回答得短一点",
    "以后请用中文回答我",
    "回答尽量用列表",
    "我从不喝酒",
    "I like concise answers",
    "I prefer Vim over VS Code",
    "I don't like long emails",
    "I can't stand meetings",
    "My favorite band is Radiohead",
    "I'd rather work from home",
    "I'm a big fan of dark chocolate",
    "I don't eat meat",
    "From now on, please answer in English",
    "Please keep your answers short from now on",
]

NOT_STATED = [
    "你喜欢什么颜色？",
    "你喜欢简洁的回答吗",
    "如果我喜欢上爬山，就会买双鞋",
    "我以前喜欢摇滚",
    "我没有特别喜欢的歌手",
    "她说我喜欢吃辣",
    "我女儿最喜欢恐龙",
    "我喜欢你",
    "我喜欢这个",
    "A: 我喜欢晴天",
    "她问：“我喜欢茶怎么说？”",
    "Do you like coffee?",
    "If I like jazz, I'll tell you",
    "I used to love running",
    "I don't think I like jazz",
    "People say I like drama",
    "My wife loves opera",
    "I like it!",
    "I love your idea",
    "I love the man she picked",
    "I'd like to know more about Rome",
    "A: I prefer rainy days",
    'He wrote "I love jazz" on the wall',
]


@pytest.mark.parametrize("said", STATED)
def test_what_the_user_says_to_prefer_is_a_preference(said: str) -> None:
    (preference,) = summary(said).preferences
    assert (preference.text, preference.observed, preference.sources) == (said, False, ("m0",))


@pytest.mark.parametrize("said", NOT_STATED)
def test_questions_hypotheses_hearsay_and_the_assistants_tastes_are_none(said: str) -> None:
    assert summary(said).preferences == ()


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("嗯，其实我喜欢川菜，但是今天没空做。", "我喜欢川菜，但是今天没空做"),
        ("我喜欢晴天，你呢？", "我喜欢晴天"),
        ("今天去了海边，我喜欢大海，我女儿不喜欢。", "我喜欢大海"),
        ("My wife loves opera, but I prefer jazz.", "I prefer jazz"),
        ("Well, I enjoy hiking, swimming, and chess. You?", "I enjoy hiking, swimming, and chess"),
    ],
)
def test_a_preference_is_the_clause_that_says_so_and_what_belongs_to_it(said: str, text: str) -> None:
    assert [preference.text for preference in summary(said).preferences] == [text]


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (("简短一点", "能不能再简短些？", "请简短回答"), "简短一点"),
        (("用DeepSeek翻译这段", "还是用DeepSeek写个摘要", "这次也用DeepSeek"), "用DeepSeek"),
        (("帮我放一首爵士乐", "再放点爵士乐吧", "来一首爵士老歌"), "爵士乐"),
        (("Can you keep it short?", "please be brief", "give me a short answer"), "please be brief"),
        (("use GPT-4o for this", "I used GPT-4o again", "please use GPT-4o"), "use GPT-4o"),
        (("Write a script in Python", "now a Python function for dates", "Python again, please"), "in Python"),
        (("Let's do Rust again", "Use Rust please", "I'd stick with Rust"), "Use Rust"),
        (("I'll have a green tea", "a green tea again, I'll have green tea", "I'll order green tea"), "green tea"),
        (("Recommend a sci-fi movie", "suggest another sci-fi show", "find a good sci-fi novel"), "sci-fi show"),
    ],
)
def test_what_is_chosen_three_times_is_observed(said: tuple[str, str, str], text: str) -> None:
    """A style, a tool, a genre; in the user's own words, with all three messages."""
    one, two, three = said
    (preference,) = summary(one, "A: 好", two, "A: 好", three).preferences
    assert (preference.text, preference.observed, preference.sources) == (text, True, ("m0", "m2", "m4"))
    assert not any(preference.observed for preference in summary(one, "A: 好", two).preferences)


def test_four_choices_of_a_language_are_one_habit() -> None:
    said = ["Which language? Python.", "Let's do Python again", "Use python please", "And this one in Python?"]
    (preference,) = summary(*[line for one in said for line in (one, "A: ok")]).preferences
    assert (preference.text, preference.observed, len(preference.sources)) == ("Python", True, 4)


@pytest.mark.parametrize(
    "said", ["I went to the Python course", "not in Python", "don't use Python", "a python bit him"]
)
def test_what_is_only_mentioned_or_refused_is_no_choice(said: str) -> None:
    assert not any(preference.observed for preference in summary(*[said, "A: ok"] * 4).preferences)


def test_what_one_message_says_three_times_is_no_habit() -> None:
    assert summary("用DeepSeek翻译，用DeepSeek改写，用DeepSeek总结").preferences == ()


def test_a_preference_that_is_said_again_names_both_messages() -> None:
    (preference,) = summary("我喜欢简洁的回答。", "A: 好", "我喜欢简洁的回答！").preferences
    assert preference.sources == ("m0", "m2")
