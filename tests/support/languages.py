"""What people say in sixteen languages: forty plain statements about themselves, and forty lines of small talk."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent / "sayings"

#: Codes (BCP 47): those of the embedded model.
LANGUAGES: Final = sorted(path.stem for path in _FOLDER.glob("*.txt"))

#: How each says that something is not so.
NEGATIONS: Final = {
    "ar": "لا",
    "de": "nicht",
    "en": "not",
    "es": "no",
    "fr": "pas",
    "it": "non",
    "ja": "ない",
    "ko": "안",
    "nl": "niet",
    "pl": "nie",
    "pt": "não",
    "ru": "не",
    "th": "ไม่",
    "tr": "değil",
    "zh": "不",
    "zh-Hant": "不",
}


def sayings(language: str) -> tuple[list[str], list[str]]:
    """What people tell, and their small talk."""
    told, small_talk = (_FOLDER / f"{language}.txt").read_text(encoding="utf-8").split("[small talk]\n")
    return told.splitlines()[1:], small_talk.splitlines()
