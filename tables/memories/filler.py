"""Lists of filler by language: greetings, thanks, hesitations, polite words and articles, which add no content.

A word is filler only where it cannot be anything else: not "please" after "to", not "hello" before a name ("Hello
Kitty"), not 请 where it may mean "invite". A doubtful word counts as content, so texts that differ in it stay two
memories.

To add a language with spaces between its words, add a `Language` to `LANGUAGES`. A language without spaces needs
`Endings`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

Phrases = frozenset[tuple[str, ...]]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _phrases(text: str) -> Phrases:
    """Split a text at each `|` into phrases, and each phrase into words."""
    return frozenset(tuple(phrase.split()) for phrase in text.replace("\n", " ").split("|"))


@dataclass(frozen=True, slots=True)
class Language:
    """Filler of a language with spaces between words. All words are in lower case."""

    #: Words that identify the language. No word identifies two languages.
    telling: frozenset[str]
    #: Phrases that are filler if they are the whole clause.
    whole: Phrases
    #: Phrases that are filler at the beginning of a clause, regardless of the next word.
    first: Phrases = frozenset()
    #: Phrases that are filler at the beginning of a clause if a word of `openers` follows.
    before_openers: Phrases = frozenset()
    openers: frozenset[str] = frozenset()
    #: Phrases that are filler at the end of a clause, unless they follow a word of `not_behind`.
    last: Phrases = frozenset()
    #: Words that are filler anywhere in a clause, unless they follow a word of `not_behind`.
    anywhere: frozenset[str] = frozenset()
    not_behind: frozenset[str] = frozenset()
    #: Articles, each with its replacement. The replacement of a German article keeps the grammatical case, because
    #: only the case shows which noun is the subject and which is the object.
    articles: Mapping[str, str] = field(default_factory=dict)
    #: Words before which an article is not filler ("a few" is more than "few").
    quantities: frozenset[str] = frozenset()
    #: Articles that can also be pronouns ("la quiero"), and a set of prepositions. These articles are filler only
    #: after one of these prepositions.
    articles_behind: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    #: A pattern for the ending of a clause's last word, and its replacement.
    ending: tuple[re.Pattern[str], str] | None = None
    #: A clause that begins with one of these words is a question.
    asking: frozenset[str] = frozenset()


ENGLISH: Final = Language(
    telling=_words("""
        the i my is am are to of and you that was have not with for we she he they please thanks thank hello hey
        by way
    """),
    whole=_phrases("""
        hi|hello|hey|hi there|hello there|hey there|good morning|good afternoon|good evening|thanks|thank you
        |many thanks|thanks a lot|thank you very much|thank you so much|cheers|please|ok|okay|well|so|oh|ah|um|uh|hm
        |hmm|you know|i mean|by the way|btw|fyi|lol|haha|anyway|actually|sorry|excuse me
    """),
    first=_phrases("please remember that|remember that|please note that|note that|by the way|btw|fyi|please"),
    before_openers=_phrases("hi|hello|hey|ok|okay|well|so|oh|ah|um|uh|hm|hmm|anyway|actually|sorry"),
    openers=_words("i i'm i'll i've i'd my we our you your he she it they the an this there can could would"),
    last=_phrases("please|thanks|thanks a lot|thank you|thank you very much|thank you so much"),
    anywhere=_words("please um uh uhm erm"),
    not_behind=_words("to say said says saying wrote write i we they he she my gave give no many of and or with"),
    articles={"a": "", "an": "", "the": ""},
    quantities=_words("few little bit lot couple"),
    asking=_words("""
        who whom whose what when where which why how do does did is are am was were can could will would shall should
        may must have has had
    """),
)
GERMAN: Final = Language(
    telling=_words("""
        ich der das und ist nicht ein eine einen mein meine zu mit auf den dem habe bin wir du für von bitte danke
        kein keine keinen
    """),
    whole=_phrases("""
        hallo|hi|hey|guten tag|guten morgen|guten abend|danke|vielen dank|danke schön|dankeschön|bitte|also|naja|na ja
        |äh|ähm|hm|ok|okay|übrigens|tja|ach|ach ja|entschuldigung
    """),
    first=_phrases("bitte|übrigens|äh|ähm"),
    before_openers=_phrases("hallo|also|ach|na ja|naja|ok|okay"),
    openers=_words("ich mein meine wir unser du dein deine er sie es das der die kannst könntest"),
    last=_phrases("bitte|danke"),
    anywhere=_words("bitte äh ähm"),
    not_behind=_words("eine der die keine meine"),
    articles={
        **dict.fromkeys(("der", "die", "das", "ein", "eine", "einer"), ""),
        **dict.fromkeys(("den", "einen"), "den"),
        **dict.fromkeys(("dem", "einem"), "dem"),
        **dict.fromkeys(("des", "eines"), "des"),
    },
    quantities=_words("paar wenig bisschen"),
    asking=_words("wer wen wem wessen was wann wo wohin woher warum wieso weshalb wie welche welcher welches"),
)
SPANISH: Final = Language(
    telling=_words("el los las que y mi un una de con por para soy está yo tengo vivo gracias hola favor"),
    whole=_phrases("""
        hola|gracias|muchas gracias|por favor|buenos días|buenas tardes|buenas noches|bueno|pues|eh|ok|vale|perdón|oye
        |por cierto
    """),
    first=_phrases("por favor|por cierto"),
    before_openers=_phrases("bueno|pues|hola|oye"),
    openers=_words("yo mi tengo soy estoy vivo el un una puedes podrías"),
    last=_phrases("por favor"),
    articles=dict.fromkeys(("el", "un", "una", "unos", "unas"), ""),
    articles_behind=(
        _words("la los las"),
        _words("a ante con contra de desde en entre hacia hasta para por según sin sobre"),
    ),
    asking=_words("qué quién quiénes cuándo dónde adónde cómo cuál cuáles cuánto cuánta cuántos cuántas"),
)
RUSSIAN: Final = Language(
    telling=_words("я не и в на мой моя мне у что это с по он она мы ты вы привет спасибо пожалуйста"),
    whole=_phrases("""
        привет|здравствуйте|здравствуй|спасибо|большое спасибо|пожалуйста|ну|эм|э|кстати|ок|окей|извините|добрый день
        |доброе утро|добрый вечер
    """),
    first=_phrases("ну|пожалуйста|кстати"),
    last=_phrases("пожалуйста"),
    anywhere=_words("пожалуйста эм"),
    asking=_words("кто кого кому что чего когда где куда откуда почему зачем как какой какая какое какие сколько"),
)
KOREAN: Final = Language(
    telling=_words("저는 나는 제 내 안 네 감사합니다 안녕하세요"),
    whole=_phrases("""
        안녕하세요|안녕|감사합니다|고마워요|고마워|고맙습니다|네|음|어|저기요|저기|부탁해요|부탁드립니다|부탁합니다|죄송합니다
    """),
    first=_phrases("음|저기요"),
    ending=(re.compile("(?<=[가-힣])(?<=[해어아여려워와셔져])요$"), ""),
)
LANGUAGES: Final = (ENGLISH, GERMAN, SPANISH, RUSSIAN, KOREAN)


def language_of(words: Sequence[str]) -> Language:
    """Return the language that most of these words (in lower case) identify; English if no language has the most."""
    if not words:
        return ENGLISH
    return max(LANGUAGES, key=lambda language: sum(map(language.telling.__contains__, words)))


@dataclass(frozen=True, slots=True)
class Endings:
    """Patterns for the filler of a language without spaces between words. A run is a sequence of its characters."""

    whole: re.Pattern[str]
    first: re.Pattern[str]
    last: re.Pattern[str]
    #: If this matches, the run is a question even without a question mark.
    asking: re.Pattern[str]

    def bare(self, run: str, begins: bool, ends: bool) -> str:
        """Return a run of characters without the filler at the beginning and the end of the clause.

        `begins` and `ends` are true if the run is at the beginning or the end of the clause.
        """
        if begins and ends and self.whole.fullmatch(run):
            return ""
        if begins and ((rest := self.first.sub("", run)) or not ends):
            run = rest
        return self.last.sub("", run) if ends else run


CHINESE: Final = Endings(
    whole=re.compile(
        "[你您]好[啊呀]?|嗨+|嘿+|哈喽|哈+|[谢謝][谢謝]?(?:[你您]|大家)?(?:[了啦啊呀])?|多[谢謝][了啦]?|(?:非常)?感[谢謝]|嗯+|哦+|噢+|喔+|啊+"
        "|哎[呀哟]?|唉|[诶欸]|好的[呢呀啊]?|好吧?|拜托[你您]?了?|麻[烦煩][你您]?了|辛苦[你您]?了|不好意思|[对對]了|话说|那个|早上好|下午好"
        "|晚上好|早安|晚安|[请請]|[请請][问問]|[请請]?[帮幫]?我?[记記]住|[请請][记記]得|顺便(?:说|问)?一?下?"
    ),
    first=re.compile(
        "^(?:嗯+|哦+|噢+|[诶欸]|哎[呀哟]|[请請][问問]|(?:[请請]|麻[烦煩])?[你您]?(?:[帮幫]我)?[记記]住(?!了)|[请請][记記]得(?!了)"
        "|[请請][你您]?(?=[帮幫]|提醒|告[诉訴]|叫我|称呼|务必|不要|[别別]))+"
    ),
    last=re.compile("(?<=.)(?:(?<![喇干幹吗嗎])嘛|(?<![毛花你我他她它们們])呢|啊|呀|哦|噢|哟|喔|呗|咯|喽)+$"),
    asking=re.compile(r"[吗嗎么麼谁誰哪怎几幾呢]|多少|[为為]何|什|是否|(\w)[不没]\1"),
)
JAPANESE: Final = Endings(
    whole=re.compile(
        "すみません|ごめんなさい|ありがとう(?:ございます)?|こんにち[はわ]|こんばん[はわ]|おはよう(?:ございます)?|えっと|ええと|あの[うー]?|うーん"
        "|はい|お願いします|よろしくお願いします|ちなみに|ところで"
    ),
    first=re.compile("^(?:えっと|ええと|あのう|あのー|うーん|ちなみに)+"),
    last=re.compile(
        "(?<=.)(?:(?:です|だ)?(?:(?<=です|ます)よ?ね|(?<=です|ます)よ)|(?<=だ)よ?ね|です|だよ?ね?|ください|下さい)$"
    ),
    asking=re.compile("か$|[誰何]|どこ|いつ|なぜ|どう|どの|どれ|いくら|いくつ"),
)
