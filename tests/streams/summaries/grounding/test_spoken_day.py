"""Which lines of a model the messages of a day hold, as far as a comparison of words can tell."""

from __future__ import annotations

from datetime import UTC

import pytest

from schemas.settings.agents import SummaryLanguage
from streams.summaries.grounding.spoken_day import Fault, SpokenDay
from tests.streams.summaries.rules.talking import turns

#: They are said on 1 January 2026, a Thursday.
ENGLISH = (
    "I'm moving to Portugal with Priya in June, the flat costs 1,500 a month and has fifty square metres",
    "A: Nice! Which database do you take for the postgres reports?",
    "tomorrow at 3pm I call the landlord. I live alone, keep your answers short",
    "A: Noted.",
)
CHINESE = ("我和小秦下周二去看房，租金三千五，用Kafka", "A: 好的", "我对花生过敏，每天跑五公里", "A: 记下了")
JAPANESE = ("田村さんと京都に行く、月曜までに切符を買わないと", "A: はい", "母はそばアレルギー", "A: わかりました")
KOREAN = ("다음 주 금요일까지 비자 서류 내야 돼", "A: 네", "지훈 씨랑 세 시에 만나", "A: 알겠어요")
GERMAN = ("Bis Freitag muss ich die Steuer abgeben, der Termin ist um halb zehn", "A: Soll ich dich daran erinnern?")


def fault(said: tuple[str, ...], line: str, language: SummaryLanguage = "auto", source: str = "m0") -> Fault | None:
    return SpokenDay(turns(*said), UTC, language).fault_of(line, [source])


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (ENGLISH, "The user is moving to Portugal in June"),
        (ENGLISH, "Plan Portugal's move and Priya's part of the flat"),
        (ENGLISH, "The flat has 50 square metres for 1500 a month"),
        (ENGLISH, "Call the landlord on January 2 at 15:00"),
        (ENGLISH, "Call the landlord on Friday"),
        (ENGLISH, "Use PostgreSQL for the reports"),
        (ENGLISH, "Prefers short answers"),
        (ENGLISH, "Moving Abroad With Family Landlord Questions"),
        (CHINESE, "用户对花生过敏"),
        (CHINESE, "下周二和小秦看房，租金3500"),
        (CHINESE, "每天跑5公里"),
        (JAPANESE, "月曜までに切符を買う"),
        (JAPANESE, "田村さんと京都旅行"),
        (KOREAN, "비자 서류 제출"),
        (KOREAN, "지훈 씨와 3시에 만남"),
        (GERMAN, "Die Steuer bis Freitag abgeben"),
        (GERMAN, "Termin um 9:30"),
    ],
)
def test_a_line_in_other_words_is_held(said: tuple[str, ...], line: str) -> None:
    assert fault(said, line) is None


@pytest.mark.parametrize(
    ("said", "line", "expected"),
    [
        (ENGLISH, "The flat costs 1,700 a month", Fault.NUMBER),
        (ENGLISH, "The flat has sixty square metres", Fault.NUMBER),
        (ENGLISH, "The landlord has version v2.7 of the flat", Fault.NUMBER),
        (ENGLISH, "Call the landlord on Monday", Fault.TIME),
        (ENGLISH, "Moving to Portugal in August", Fault.TIME),
        (ENGLISH, "Moving to Portugal next year", Fault.TIME),
        (ENGLISH, "Moving to Portugal with Ludmila", Fault.NAME),
        (ENGLISH, "Moving to the flat with an iPhone", Fault.NAME),
        (ENGLISH, "Set max_rent for the flat", Fault.NAME),
        (ENGLISH, "Repairs old violins", Fault.WORDS),
        (CHINESE, "租金三千六", Fault.NUMBER),
        (CHINESE, "每天跑6公里", Fault.NUMBER),
        (CHINESE, "下周三去看房", Fault.TIME),
        (CHINESE, "和小郑去看房", Fault.NAME),
        (CHINESE, "看房用Flink", Fault.NAME),
        (CHINESE, "喜欢修理旧小提琴", Fault.WORDS),
        (JAPANESE, "火曜までに切符を買う", Fault.TIME),
        (JAPANESE, "藤井さんと京都に行く", Fault.NAME),
        (JAPANESE, "古い楽器の修理", Fault.WORDS),
        (KOREAN, "월요일까지 비자 서류 제출", Fault.TIME),
        (KOREAN, "민수 씨와 만남", Fault.NAME),
        (KOREAN, "바이올린 수리", Fault.WORDS),
        (GERMAN, "Die Steuer bis Montag abgeben", Fault.TIME),
        (GERMAN, "Termin um 8:30", Fault.NUMBER),
        (GERMAN, "Repariert alte Geigen", Fault.WORDS),
    ],
)
def test_what_no_message_says_is_found(said: tuple[str, ...], line: str, expected: Fault) -> None:
    assert fault(said, line) == expected


@pytest.mark.parametrize(
    ("said", "line", "language", "expected"),
    [
        (CHINESE, "Is allergic to peanuts", "en", None),
        (CHINESE, "Viewing a flat with Xiao Qin on Tuesday", "en", None),
        (CHINESE, "Runs 5 kilometres a day", "en", None),
        (CHINESE, "Runs 7 kilometres a day", "en", Fault.NUMBER),
        (CHINESE, "Viewing a flat on Wednesday", "en", Fault.TIME),
        (GERMAN, "Hand in the tax return by Friday", "en", None),
        (GERMAN, "Hand in the tax return by Monday", "en", Fault.TIME),
        (ENGLISH, "明天下午三点给房东打电话", "zh", None),
        (ENGLISH, "房租每月1600", "zh", Fault.NUMBER),
        (JAPANESE, "对荞麦过敏", "zh", None),
        ((*ENGLISH, *CHINESE), "Is allergic to peanuts", "auto", None),
    ],
)
def test_of_a_line_in_another_language_numbers_and_times_are_compared(
    said: tuple[str, ...], line: str, language: SummaryLanguage, expected: Fault | None
) -> None:
    assert fault(said, line, language, f"m{len(said) - 2}") == expected


def test_a_line_in_a_language_of_no_message_is_not_held_unless_the_settings_ask_for_it() -> None:
    assert fault(CHINESE, "Is allergic to peanuts") is Fault.WORDS
    assert fault(ENGLISH, "给房东打电话") is Fault.WORDS
    assert fault(JAPANESE, "楽器修理") is Fault.WORDS
    assert fault(JAPANESE, "京都旅行") is None
    assert fault(CHINESE, "Kafka") is None


def test_a_number_must_be_said_near_the_cited_message_or_with_a_word_of_the_line() -> None:
    said = (
        "My dad has type 2 diabetes",
        "A: I see.",
        "And now?",
        "A: Eat.",
        "Ok",
        "A: Fine",
        "Make 5 portions",
        "A: Ok",
    )
    assert fault(said, "type 5 diabetes") is Fault.NUMBER
    assert fault(said, "5 portions") is None


def test_a_line_cites_the_first_message_with_most_of_its_words_if_its_own_have_none() -> None:
    day = SpokenDay(turns(*ENGLISH), UTC, "auto")
    assert day.sources_of("call the landlord", ("m3",)) == ("m2",)
    assert day.sources_of("call the landlord about the flat", ("m0",)) == ("m0",)
    assert day.sources_of("violins", ("m3",)) == ("m3",)
    assert day.sources_of("给房东打电话", ("m3",)) == ("m3",)
