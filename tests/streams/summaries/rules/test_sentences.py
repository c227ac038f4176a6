"""Messages cut into sentences and clauses."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.settings.agents import SummarySettings
from streams.language.estimator import READ_CHARS
from streams.language.scripts import is_chinese
from streams.summaries.rules.labels import LABELS, language_of
from streams.summaries.rules.sentences import CHINESE, ENGLISH, parted, sentences_of, shortened
from tests.streams.summaries.rules.talking import turns


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("I like tea. You don't.", ["I like tea.", "You don't."]),
        ("Dr. Who lives at https://a.example/x?y=1. It costs 3.50!", 2),
        ("今天去爬山了。很累！你呢？", ["今天去爬山了。", "很累！", "你呢？"]),
        ("看了《加油！妈妈》，很感人。", 1),
        ("他说“走吧。”然后就走了。", 1),
        ("- milk\n- eggs\n1. bread", ["milk", "eggs", "bread"]),
        ("Look [shared image: two dogs. One barks.] at that", ["Look", "at that"]),
        ("……\n!!!\n", ["……", "!!!"]),
        ("هل تحب الشاي؟ أنا أحبه.", ["هل تحب الشاي؟", "أنا أحبه."]),
        ("मुझे चाय पसंद है। और तुम?", ["मुझे चाय पसंद है।", "और तुम?"]),
    ],
)
def test_where_a_message_is_cut(text: str, sentences: list[str] | int) -> None:
    """Marks within titles, quotations, addresses and numbers end nothing; new lines and the client's notes do."""
    found = [sentence.text for sentence in sentences_of(turns(text))]
    assert found == sentences if isinstance(sentences, list) else len(found) == sentences


@pytest.mark.parametrize(
    ("text", "opened"),
    [
        ("Well, by the way, I moved.", "I moved."),
        ("Thanks, Tom! But I moved.", "I moved."),
        ("好的，谢谢你的建议，但是我搬家了。", "我搬家了。"),
        ("你好，朋友，今天我搬家了。", "今天我搬家了。"),
    ],
)
def test_what_leads_to_a_clause_is_no_part_of_it(text: str, opened: str) -> None:
    assert [clause for sentence in sentences_of(turns(text)) for clause in sentence.opened if clause] == [opened]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("我喜欢茶，你呢？", 1),
        ("你喜欢什么", 0),
        ("我不知道该选什么", 1),
        ("我妈在上班呢。", 1),
        ("I like tea, do you?", 1),
        ("What is that", 0),
        ("When I cook, I sing.", 2),
        ("أحب الشاي، وأنت؟", 0),
    ],
)
def test_what_is_asked_is_not_told(text: str, told: int) -> None:
    (sentence,) = sentences_of(turns(text))
    assert sentence.told == told


@pytest.mark.parametrize(
    ("text", "cues"), [("我住在 Berlin", CHINESE), ("We had 火锅 again", ENGLISH), ("?!", ENGLISH)]
)
def test_the_language_is_that_of_most_words(text: str, cues: object) -> None:
    assert all(sentence.cues is cues for sentence in sentences_of(turns(text)))


def test_a_block_of_code_and_a_traceback_are_code() -> None:
    text = 'It says:\n```\nx = 1\nprint(x)\n```\nTraceback (most recent call last):\n  File "a.py", line 1\nWhy?'
    code = [sentence.text for sentence in sentences_of(turns(text)) if sentence.code]
    assert code == ["x = 1", "print(x)", "Traceback (most recent call last):", 'File "a.py", line 1']


def test_a_long_message_is_read_up_to_its_last_whole_sentence() -> None:
    text = "This is a sentence of the document. " * 100
    (*_, last) = sentences_of(turns(text))
    assert len(text) > READ_CHARS
    assert last.text == "This is a sentence of the document."


@given(st.text(max_size=200))
def test_nothing_is_added_and_each_sentence_stands_in_its_message(text: str) -> None:
    for sentence in sentences_of(turns(text or "x")):
        assert sentence.text in " ".join(text.split()) or sentence.code or text == ""
        assert "".join(sentence.clauses) == sentence.text
        assert 0 <= sentence.told <= len(sentence.clauses) == len(sentence.opened)


@pytest.mark.parametrize(
    ("text", "chars", "short"),
    [
        ("short", 50, "short"),
        ("I went to the museum yesterday, and then we had lunch at my aunt's", 50, "I went to the museum yesterday"),
        (
            "I was most interested in the exhibitions about ancient culture",
            50,
            "I was most interested in the exhibitions",
        ),
        ("I had to plan and research a lot to design and build it", 45, "I had to plan and research a lot"),
        ("今天去了博物馆，学到了很多，后来又去了河边散步", 15, "今天去了博物馆，学到了很多"),
        ("x" * 60, 50, "x" * 50),
    ],
)
def test_a_text_is_shortened_where_it_makes_sense(text: str, chars: int, short: str) -> None:
    assert shortened(text, chars) == short


@given(st.text(max_size=200), st.integers(5, 60))
def test_a_shortened_text_is_short_is_the_beginning_and_stays_so(text: str, chars: int) -> None:
    short = shortened(text, chars)
    assert len(short) <= chars
    assert short in text
    assert shortened(short, chars) == short


def test_a_text_and_its_reason() -> None:
    assert parted("we took the train because it is cheaper", ENGLISH) == ("we took the train", "it is cheaper")
    assert parted("我们坐火车，因为便宜", CHINESE) == ("我们坐火车", "便宜")
    assert parted("we took the train", ENGLISH) == ("we took the train", "")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("我住在 Berlin", "zh"),
        ("The project 用了 React and Redux, it is slow and heavy", "en"),
        ("私は札幌に住んでいて、犬を飼っています。", "ja"),
        ("東京タワー", "ja"),
        ("カメラ", "ja"),
        ("저는 부산에 살고 개를 키워요.", "ko"),
        ("저는 釜山에 살아요", "ko"),
        ("我喜欢那首歌「さくら」的歌词，昨天晚上和朋友一起唱了很久，唱到嗓子都哑了才回家。", "zh"),
        ("Ich wohne in Köln", "en"),
        ("", "en"),
        ("👍", "en"),
    ],
)
def test_titles_are_in_the_language_of_most_of_it(text: str, language: str) -> None:
    """Japanese has Chinese characters, and Korean has words with spaces between them."""
    assert language_of(turns(text)) == language
    assert is_chinese(text) == (language == "zh")


def test_every_language_has_every_title() -> None:
    chinese = LABELS["zh"]
    for labels in LABELS.values():
        assert all(label.strip() for label in labels)
        assert [label.count("{}") for label in labels] == [label.count("{}") for label in chinese]
        assert len({labels.topics, labels.preferences, labels.decisions, labels.todos, labels.problems}) == 5
    assert set(LABELS) | {"auto"} == set(get_args(SummarySettings.model_fields["language"].annotation))
