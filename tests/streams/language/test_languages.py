"""What people tell in sixteen languages is kept at default settings, small talk is not; nothing is dropped unread."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.exchanges import Exchange
from schemas.phrases import ORDERS_FIRST
from schemas.settings import MemorySettings, ScoringSettings
from streams.intake.rules.decision import Decision, RatingNeeded
from streams.intake.rules.promotion import Promoter
from streams.intake.rules.scoring import Scorer
from streams.language.estimator import estimate, estimated_rating
from streams.language.list_reading import SIGNALS
from streams.language.telling import LATIN, language_of
from streams.language.word_lists import CODES, folded, lists_of, sections
from tests.support.examples import examples
from tests.support.languages import LANGUAGES, sayings
from tests.support.making import exchange

#: As plain as those of the files, in languages that nothing here reads.
UNREAD: Final = {
    "Swedish": ["Jag heter Sven och bor i Lund", "Min dotter blir sex år i mars", "Jag är allergisk mot jordnötter"],
    "Danish": ["Jeg bor i Aarhus med min kone", "Min bror læser jura i Odense", "Jeg kan ikke tåle nødder"],
    "Finnish": ["Minun nimeni on Aino ja asun Turussa", "Olen allerginen pähkinöille", "Vaimoni on lääkäri Oulussa"],
    "Czech": ["Jmenuji se Jana a bydlím v Brně", "Moje dcera má narozeniny v březnu", "Jsem alergický na ořechy"],
    "Hungarian": ["Anna vagyok és Szegeden élek", "A lányom márciusban lesz hat éves", "Nem eszem húst"],
    "Romanian": ["Mă numesc Ana și locuiesc în Iași", "Sunt alergic la arahide și ouă", "Fiica mea are șase ani"],
    "Indonesian": ["Nama saya Dewi dan saya tinggal di Medan", "Saya alergi kacang tanah dan udang"],
    "Vietnamese": ["Tôi tên là Lan và sống ở Huế", "Tôi bị dị ứng với lạc", "Con gái tôi lên sáu tuổi"],
    "Greek": ["Με λένε Άννα και μένω στην Πάτρα", "Είμαι αλλεργικός στα φιστίκια"],
    "Hebrew": ["קוראים לי דנה ואני גרה בחיפה", "אני אלרגי לבוטנים"],
    "Hindi": ["मेरा नाम अनीता है और मैं पुणे में रहती हूँ", "मुझे मूंगफली से एलर्जी है"],
    "Bengali": ["আমার নাম রিনা, আমি খুলনায় থাকি"],
    "Ukrainian": ["Мене звати Оксана, я живу у Львові", "Моя донька навчається в школі, їй шість"],
    "Persian": ["اسم من مریم است و در شیراز زندگی می‌کنم", "من به بادام زمینی حساسیت دارم"],
    "Georgian": ["მე მქვია ნინო და ვცხოვრობ ბათუმში"],
    "Amharic": ["ስሜ ሰላም ነው በአዲስ አበባ እኖራለሁ"],
}


def decided(text: str, memory: MemorySettings | None = None) -> Decision:
    """What becomes of an exchange in which a user says this, when it leaves the window."""
    promoter = Promoter(memory or MemorySettings(), estimated_rating)
    said = exchange(text, "")
    decision = promoter.at_close(said) or promoter.score(said, 1, leaving=True)
    assert isinstance(decision, Decision)
    return decision


def test_the_sixteen_are_those_of_the_embedded_model() -> None:
    assert {*CODES, "en", "zh", "zh-Hant"} == {*LANGUAGES}
    assert len(LANGUAGES) == 16


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_people_tell_is_kept_and_small_talk_is_not(language: str) -> None:
    told, small_talk = sayings(language)
    assert len(told) >= 40
    assert len(small_talk) >= 40
    lost = [text for text in told if not decided(text).kept]
    kept = [text for text in small_talk if decided(text).kept]
    assert len(lost) <= len(told) / 10, lost
    assert len(kept) <= len(small_talk) / 5, kept


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_is_known_by_a_sentence(language: str) -> None:
    told, _ = sayings(language)
    taken = {text: language_of(text) for text in told if language_of(text) != language.removesuffix("-Hant")}
    assert len(taken) <= len(told) / 10, taken


@pytest.mark.parametrize("language", UNREAD)
def test_what_cannot_be_read_is_kept_and_told(language: str) -> None:
    """At default settings, and where the estimator stands in for a model that decides alone."""
    for text in UNREAD[language]:
        decision = decided(text)
        assert (decision.kept, decision.importance, decision.parts.reason) == (True, 70, "unread"), text
        assert decision.parts.value is None
        assert decided(text, MemorySettings(scoring=ScoringSettings(policy="llm"))).parts.reason == "unread"
        assert decided(text, MemorySettings(scoring=ScoringSettings(policy="all"))).parts.reason == "all"


def test_a_model_is_asked_about_what_the_estimator_cannot_read() -> None:
    """Its rating alone decides."""
    promoter = Promoter(MemorySettings(), None)
    said = exchange(UNREAD["Hindi"][0])
    assert isinstance(promoter.score(said, 1, leaving=True), RatingNeeded)
    assert (promoter.rated(said, 1).kept, promoter.rated(said, 0).kept) == (True, False)


@pytest.mark.parametrize("text", ["", "   ", "👍👍", "ok", "1234", "https://example.com/a?b=c", "hm hm hm", "!!!"])
def test_what_has_no_words_is_not_unread(text: str) -> None:
    assert not decided(text).kept


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I met Jürgen and Françoise at the café in Zürich", "en"),
        ("We sang 'Bella ciao' and 'La vie en rose' all night", "en"),
        ("我住在 Berlin, 在 Siemens 工作", "zh"),
        ("私はFacebookとYouTubeが好きです", "ja"),
        ("Ich habe 你好 gelernt", "zh"),
        ("Мой ник в игре DragonSlayer", "ru"),
        ("No", "en"),
        ("okay", "en"),
    ],
)
def test_words_of_another_language_do_not_hide_a_texts_own(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize("language", CODES)
def test_questions_and_replies_tell_nothing(language: str) -> None:
    """Each statement as a question; and an assistant that explains without "I"."""
    told, _ = sayings(language)
    mark = {"ar": "؟", "ja": "？"}.get(language, "?")
    asked = [text for text in told if estimate(f"{text}{mark}", "").rating >= 2]
    assert len(asked) <= len(told) / 5, asked


@pytest.mark.parametrize("language", CODES)
def test_two_people_who_talk_to_each_other_both_tell(language: str) -> None:
    """What the other one says of herself counts, and is named as what was said in reply."""
    told, small_talk = sayings(language)
    told = [text for text in told if language_of(text) == language]
    for one, other in pairwise(told):
        both, alone = estimate(one, other), estimate(one, "")
        assert set(both.signals) >= set(alone.signals)
        assert {name.removeprefix("reply: ") for name in both.signals} <= {*SIGNALS}
    answered = [estimate(small_talk[0], one) for one in told]
    assert any(name.startswith("reply: ") for one in answered for name in one.signals)


@given(st.sampled_from(CODES), st.data())
@examples(200)
def test_form_changes_nothing(language: str, data: st.DataObject) -> None:
    """Capitals, marks, spaces around it."""
    told, _ = sayings(language)
    text = data.draw(st.sampled_from(told))
    form = data.draw(st.sampled_from(["{}", "  {}\n", "{}!", "{}.", "« {} »"])).format(text)
    for said in (form, form.lower()):
        assert decided(said).kept == decided(text).kept


@pytest.mark.parametrize("language", CODES)
def test_each_file_has_all_sections_and_each_word_once(language: str) -> None:
    listed = sections(language)
    needed = {"self", "life", "courtesy", "you", "asking"} | ({"function", "letters"} if language in LATIN else set())
    assert listed.keys() == needed
    for title, words in listed.items():
        assert words
        assert len(words) == len({*words}), (title, [word for word in words if words.count(word) > 1])


@pytest.mark.parametrize("language", CODES)
def test_what_is_said_to_be_polite_is_counted_and_is_no_news(language: str) -> None:
    for courtesy in sections(language)["courtesy"]:
        if not any(sign in courtesy for sign in "*^(["):
            found = lists_of(language).find(courtesy)
            assert (found.courtesies > 0, found.news, found.life) == (True, False, frozenset()), courtesy


def test_letters_that_are_written_in_several_ways_are_one() -> None:
    assert folded("أُحِبُّ") == folded("احب")
    assert folded("KIZIM İzmir") == folded("kızım izmir")
    assert folded("Её") == folded("ее")


#: Asks to remember, tells or asks of remembering.
REQUESTS: Final = {
    "de": ("Bitte merk dir, dass mein Zug um acht fährt", "Er sagt: sie merkt sich alles", "Merk dir das auch?"),
    "fr": ("S'il te plaît, retiens que je pars lundi", "Il ne faut pas que tu retiennes que", "N'oublie pas, hein?"),
    "es": ("Por favor, recuerda que salgo el lunes", "Ella recuerda que salimos el lunes", "¿Recuerda que salimos?"),
    "it": ("Ricordati che parto lunedì", "Mia zia si è ricordata di tutto", "Ricordati, va bene?"),
    "nl": ("Onthoud dat ik maandag vertrek", "Mijn tante onthoudt alles", "Onthoud je dat?"),
    "pt": ("Por favor, lembre-se: parto na segunda", "Ela sempre lembra que eu parto", "Não esqueça, tá?"),
    "pl": ("Proszę, zapamiętaj: wyjeżdżam w poniedziałek", "Babcia zapamiętała wszystko", "Zapamiętaj to, dobrze?"),
    "ru": ("Пожалуйста, запомни: поезд в восемь", "Она запомнила всё", "Запомнил ли он это?"),
    "tr": ("Lütfen unutma, pazartesi gidiyorum", "Annem hiçbir şeyi unutmaz", "Bunu unuttun mu?"),
    "ar": ("من فضلك تذكر أن قطاري في الثامنة", "أتذكر أن القطار تأخر", "هل تذكر ذلك؟"),
    "ja": ("電車は八時だと覚えておいて", "母はよく覚えています", "覚えていますか？"),
    "ko": ("기차가 여덟 시라고 기억해 줘", "엄마는 다 기억해요", "기억하세요?"),
    "th": ("ช่วยจำไว้ว่ารถไฟออกแปดโมง", "แม่ความจำดี", "แม่คิดถึงอะไร"),
}


@pytest.mark.parametrize("language", REQUESTS)
def test_a_request_to_remember_is_one_and_a_tale_of_it_is_none(language: str) -> None:
    asks, tells, wonders = REQUESTS[language]
    scorer = Scorer(MemorySettings())
    assert [scorer.asks_to_remember(exchange(text)) for text in (asks, tells, wonders)] == [True, False, False]


@pytest.mark.parametrize("phrase", ORDERS_FIRST)
def test_who_tells_of_remembering_orders_nothing(phrase: str) -> None:
    said: Exchange = exchange(f"kwabena {phrase} xyz")
    assert not Scorer(MemorySettings()).asks_to_remember(said)
