"""Tokens without a tokenizer. The counts beside the texts are those of `cl100k_base`."""

from __future__ import annotations

import pytest

from streams.models.token_count import estimated_tokens, most_tokens

ENGLISH_AND_CHINESE = [
    ("I moved to Oslo last spring, and my sister Anna still lives in Hamburg with her two cats.", 20),
    ("The deadline moved from 12 March to 3 April 2026; please tell Tom (tom@example.com) and book room 4.12.", 31),
    ("We now use PostgreSQL 16.2 instead of MySQL, because the replication lag was over 30 s every Monday.", 24),
    ("user: What should I cook?\nassistant: You are allergic to peanuts, so how about a risotto with mushrooms?", 24),
    ("- [2026-03-14, 8 months ago] Ann: I'm training for a half marathon, my knee hurts after ~15 km!!", 32),
    ("我下周三要去上海出差，住在静安寺附近的酒店，记得提醒我带充电器和护照。", 48),
    ("我对花生过敏，上次在餐厅吃了一点酱料就进了医院，所以点菜的时候一定要问清楚。", 50),
    ("- [2026-03-14，8 个月前] 小王：我们把项目的截止日期改到了 4 月 3 日，预算还是 12 万。", 49),
]
OTHERS = [
    ("Ich wohne seit drei Jahren in Kiel und arbeite als Ärztin in einer kleinen Praxis am Hafen.", 27),
    ("Mi hermana estudia medicina en Barcelona y quiere ser pediatra; yo trabajo con bicicletas en Madrid.", 26),
    ("私は三年前から東京に住んでいて、小さな会社でエンジニアとして働いています。", 36),
    ("저는 3년 전부터 서울에 살고 있고 작은 회사에서 엔지니어로 일하고 있습니다.", 37),
]


def test_the_estimate_is_near_the_count() -> None:
    for text, count in ENGLISH_AND_CHINESE:
        assert 0.85 * count <= estimated_tokens(text) <= 1.15 * count, text


def test_other_languages_are_estimated_too() -> None:
    """Less well: their words are cut into more pieces than English ones, as far as the letters do not tell."""
    for text, count in OTHERS:
        assert 0.7 * count <= estimated_tokens(text) <= 1.3 * count, text


def test_nothing_has_no_tokens() -> None:
    assert estimated_tokens("") == estimated_tokens("   ") == most_tokens("") == 0


@pytest.mark.parametrize("text", ["a" * 400, "记" * 100, "1" * 100, "🙂" * 10, "hello world\n"])
def test_two_parts_have_no_fewer_tokens_than_the_whole(text: str) -> None:
    """So what fits piece by piece fits together."""
    for cut in range(len(text)):
        assert estimated_tokens(text[:cut]) + estimated_tokens(text[cut:]) >= estimated_tokens(text)
