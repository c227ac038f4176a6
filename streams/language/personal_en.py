"""English sentences in which users tell of themselves. See `personal.py`.

Most rules are tried where a clause begins: "Well, I moved to Oslo, and I love skiing" has two such places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from streams.language import reading_en
from streams.language.personal_fact import Fact, Part, key_of
from tables.search import english_statements
from tables.search.found_statement import Found
from tables.time_expressions.windows import may_have_times


def _of_class(letter: str) -> list[str]:
    return sorted(
        (word for word, known in reading_en.LEXICON.letter_of.items() if known == letter), key=len, reverse=True
    )


def _rule(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_RELATION_WORDS: Final = (*_of_class("R"), "guinea pig", "parrot", "hamster", "rabbit", "horse")
_RELATIONS: Final = "|".join(_RELATION_WORDS)
_OCCUPATIONS: Final = "|".join(_of_class("K"))
_WORD: Final = re.compile(r"[a-z]+")
#: A sentence without one of these words tells nothing, and one without a word of a relation tells of no people.
_CUE: Final = _rule(r"\b(?:i|we|my|our|us|user|me|remind|deadline|appointment|meeting|exam|interview|flight|todo)\b")
_PEOPLE_CUES: Final = frozenset(word for phrase in _RELATION_WORDS for word in phrase.split())
#: What held before, would hold if, or is said by others.
_UNREAL: Final = _rule(
    r"\b(?:if|unless|suppose|imagine|pretend|wish|used to|would have|could have|might|maybe|perhaps|wouldn['’]t"
    r"|as a (?:kid|child|boy|girl|teen\w{0,6}|student)|when (?:i|we) (?:was|were)|back then|growing up|years? ago"
    r"|not sure|(?:he|she|they|people|someone|everyone|you) (?:says?|said|thinks?|thought|tells?|told|asks?|asked))\b"
)
#: Where a clause of the speaker begins.
_BEGINS: Final = _rule(
    r"(?:^(?:(?:ok(?:ay)?|hi|hey|hello|well|so|also|and|but|plus|oh|yes|yeah|yep|no|actually|btw|by the way|honestly"
    r"|personally|sorry|please|thanks|great|wow|remember that|please remember(?: that)?|note that|fyi)[,:.!]? ){0,3}"
    r"|[,;:–—-] (?:(?:and|but|so|because|since) )?|\b(?:and|but|because|since|that) )"
    r"(?=(?:i|we|my|our|the|can|could|would|will|please|remind|don|to-?do|call|you can)\b)"
)
_HOW: Final = (
    r"(?: (?:really|also|always|still|just|generally|usually|absolutely|truly|mostly|definitely|particularly"
    r"|especially|totally|now|currently|even|personally|completely|severely|very|so|both|actually|do|simply|only"
    r"|originally)){0,3}"
)
_I: Final = rf"(?:I|we){_HOW}"
_I_AM: Final = rf"(?:I['’]m|I am|we['’]re|we are|I['’]ve always been){_HOW}"
_NO_NAME: Final = (
    "January|February|March|April|May|June|July|August|September|October|November|December|Christmas|Easter|Mon|Tues"
    "|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|The|And|But|So|God|This|That|It|Its|He|She|They|We|You"
    "|Yeah|Yes|No|Oh|Wow|Also|Here|There|My|Our|Thanks|Thank|Hi|Hey|Hello|What|Who|When|Where|How|Well|One|If|As|In"
    "|Sure|Ate|Eat|Eats|Never|Always|Often|Sometimes|Usually|Really|Loves|Loved|Love|Likes|Liked|Hates|Has|Had|Have"
    "|Does|Did|Do|Can|Could|Should|Would|Must|Goes|Went|Came|Comes|Calls|Called|Says|Said|Got|Gets|Gave|Made|Makes"
    "|Keeps|Still|Ever|Only|Even|Too|Very|Maybe|Probably|Actually|Finally|Recently|Again|Back|Who|Which|Lives|Lived"
    "|Works|Wants|Needs|Thinks|Told|Died|Passed|Took|Takes|Saw|Ran|Runs|For|To|From|With|About|Because|Or|Of|By"
    "|On|At|Not|Just|Then|Now|Last|Next|Today|Tomorrow|Yesterday|Is|Are|Was|Everyone|Family"
)
_NAME: Final = rf"(?-i:(?!(?:{_NO_NAME})\b)[A-Z][a-z]{{1,15}})\b"
_PERSON: Final = (
    r"(?:(?:big|little|older|younger|elder|best|good|dear|close|old|new|oldest|youngest|late) ){0,2}"
    rf"(?P<who>{_RELATIONS})"
)
#: Objects that only the conversation tells, and phrases of courtesy.
_VAGUE: Final = (
    r"(?:it|that|this|those|these|them|him|her|you|your|yours|the|how|what|when|why|where|who|everything|anything"
    r"|something|nothing|so|one|ones|both|all|to (?:hear|see|know|think|say|thank|believe|ask|share|help|add|point"
    r"|chat|talk|try|hope)|hearing|seeing|talking|chatting|knowing|sharing|about|for|as|like|too|and|or|but|because"
    r"|being|feeling|not|getting|having|starting|ending|leaving|our|its|their|his|another|some of)\b"
)
_OBJECT: Final = rf" (?!{_VAGUE})(?P<what>[\w'’][^,;:.!?()]{{1,80}})"

#: An object that points to something else.
_POINTS: Final = _rule(r"\b(?:it|this|that|these|those|them)\b")

_LANGUAGES: Final = (
    r"(?-i:English|French|German|Spanish|Italian|Portuguese|Dutch|Norwegian|Swedish|Danish|Finnish|Icelandic|Polish|Czech"
    r"|Slovak|Hungarian|Romanian|Bulgarian|Greek|Turkish|Russian|Ukrainian|Serbian|Croatian|Albanian|Arabic|Hebrew"
    r"|Persian|Farsi|Hindi|Urdu|Bengali|Punjabi|Tamil|Telugu|Thai|Vietnamese|Indonesian|Malay|Tagalog|Filipino|Chinese"
    r"|Mandarin|Cantonese|Japanese|Korean|Swahili|Afrikaans|Irish|Welsh|Catalan|Basque|Latin|Esperanto)"
)
_CARS: Final = (
    r"(?:car|van|truck|suv|pickup|lorry|bus|taxi|tractor|motorbike|motorcycle|scooter|convertible|minivan|sedan|hatchback"
    r"|(?-i:Toyota|Honda|Ford|Tesla|Volkswagen|VW|Audi|BMW|Mercedes|Volvo|Skoda|Fiat|Renault|Peugeot|Opel|Nissan|Mazda"
    r"|Subaru|Hyundai|Kia|Lexus|Jeep|Porsche|Mini|Chevrolet|Citroen|Seat|Dacia|Prius|Golf|Civic|Corolla))"
)

#: What is about the speaker, by the key of the fact.
_ABOUT: Final = (
    ("name", _rule(rf"(?:my (?:full |first |real )?name(?:['’]s| is)|(?:you can |please )?call me) {_NAME}")),
    (
        "occupation",
        _rule(
            rf"{_I_AM} an? (?:[\w-]+ ){{0,3}}(?:{_OCCUPATIONS})\b(?! of\b|['’])"
            rf"|{_I} (?:run|own) (?:my own|a) (?:[\w-]+ ){{0,2}}"
            r"(?:shop|store|studio|business|company|restaurant|farm|gym|salon|bakery|caf[eé])\b"
        ),
    ),
    (
        "employer",
        _rule(
            rf"{_I}(?:['’]ve)? (?:no longer work|(?:quit|left|lost) my job|(?:was|got|have been) laid off)\b"
            rf"|{_I} work in (?:the [\w ]{{2,40}}(?:industry|sector|field|department)\b"
            r"|(?!the\b|an?\b|this\b|that\b|my\b|our\b|there\b)\w)"
        ),
    ),
    ("home", _rule(rf"{_I} (?:no longer live|don['’]t live) (?:in|at) (?-i:[A-Z])")),
    (
        "study",
        _rule(
            rf"(?:{_I_AM} (?:studying|majoring in)|{_I} (?:study|major in)|my major is)"
            r" (?!at\b|for\b|it\b|hard\b|the\b|that\b|this\b|together\b)\w"
        ),
    ),
    ("origin", _rule(rf"(?:{_I_AM} from|{_I} (?:come from|grew up in|was born in)|my hometown is) (?-i:[A-Z])\w")),
    ("birthday", _rule(rf"(?:{_I} was born on|my birthday(?:['’]s| is)) \w")),
    (
        "status",
        _rule(
            rf"{_I_AM} (?:(?:happily|newly|recently) )?(?:married|single|divorced|widowed|engaged|retired|unemployed"
            r"|pregnant|transgender|gay|lesbian|bisexual)\b(?! to (?:it|this|that)| in\b| with\b)"
        ),
    ),
    ("pronouns", _rule(r"my pronouns are\b")),
    ("languages", _rule(rf"{_I} speak (?:(?:fluent|native|some|good) )?{_LANGUAGES}\b")),
    ("car", _rule(rf"{_I} drive (?:an?|my) (?:[\w-]+ ){{0,2}}{_CARS}(?=[,.!;]|$)")),
)
_GREETED: Final = _rule(rf"^(?:hi|hello|hey)[,!]? (?:I['’]m|I am) {_NAME}(?=[,.!]|$| and\b)")
_HOME_COUNTRY: Final = _rule(r"\bmy home (?:country|town),? (?-i:[A-Z])")
_HOW_EATEN: Final = (
    r"(?:now|out|in|at|on|with|without|before|after|until|while|much|well|enough|any ?more|fast|right|yet|properly"
    r"|alone|here|there|today|tonight|tomorrow|late|early|lunch|dinner|breakfast|together|if|when|again|a lot|a thing"
    r"|very)\b"
)
#: What the body allows. There may be several facts.
_HEALTH: Final = _rule(
    rf"{_I_AM} (?:allergic to|intolerant (?:to|of)|(?:an? |strictly )?(?:vegan|vegetarian|pescatarian|diabetic"
    rf"|coeliac|celiac|asthmatic|(?:lactose|gluten)[ -]intolerant))\b"
    rf"|{_I} have (?:an? )?(?:\w+ ){{0,2}}(?:allerg(?:y|ies)|asthma|diabetes|adhd|celiac|epilepsy|migraines?"
    r"|arthritis|insomnia)\b"
    rf"|{_I} (?:don['’]t|do not|can['’]t|cannot|never) (?:eat|drink|smoke) (?!{_VAGUE}|{_HOW_EATEN})\w"
)
#: What the speaker likes; the group `what` is the object.
_LIKES: Final = (
    _rule(
        rf"{_I}(?: (?:don['’]t|do not|no longer))?{_HOW}"
        rf" (?:love|like|prefer|hate|enjoy|dislike|adore|despise|loathe)(?: to)?{_OBJECT}"
    ),
    _rule(
        rf"{_I_AM} (?:an? (?:big|huge|real|great|total) fan of|fond of|into|keen on|passionate about|crazy about"
        rf"|afraid of|scared of|terrified of){_OBJECT}"
    ),
    _rule(rf"{_I} can(?:['’]t|not) stand{_OBJECT}"),
    _rule(
        rf"{_I} play (?P<what>(?:the )?(?:guitar|piano|violin|drums|clarinet|flute|cello|bass|saxophone|chess"
        r"|tennis|football|soccer|basketball|volleyball|badminton|golf|video games))\b"
    ),
    _rule(
        r"my (?:(?:all-time|absolute|personal|very) )?favou?rite (?!part\b|thing\b|one\b|memor|moment)"
        r"(?P<what>[\w-]+(?: [\w-]+){0,3}?) (?:is|are) (?!when\b|how\b|that\b|this\b|the one)\w"
    ),
    _rule(r"my (?P<what>hobby|hobbies) (?:is|are) \w"),
)
#: People with names, in any place of a sentence.
_RELATED: Final = (
    _rule(rf"\b(?:my|our) {_PERSON},? (?:(?:is )?(?:called|named) )?(?P<name>{_NAME})(?!['’]s Day)"),
    _rule(rf"\b(?:my|our) {_PERSON}(?:['’]s name is|['’]s called) (?P<name>{_NAME})"),
    _rule(rf"(?:^|[,;] |\band )(?P<name>{_NAME}) is my {_PERSON}\b(?!['’])"),
    _rule(rf"\b(?P<name>{_NAME}), my {_PERSON}(?=[,.!]|$)"),
    _rule(rf"\bI have (?:an?|one|two|three) {_PERSON},? (?:called|named) (?P<name>{_NAME})"),
)
_FAMILY: Final = _rule(
    rf"{_I}(?:['’]ve got| have(?: got)?) (?:(?:an?|one|two|three|four|five|\d) )?"
    r"(?:(?!lots?\b|of\b|some\b)[\w-]+ ){0,2}?"
    r"(?P<who>kids?|children|sons?|daughters?|brothers?|sisters?|siblings?|dogs?|cats?|bab(?:y|ies)|twins)\b(?!['’-])"
)
_DEATH: Final = _rule(rf"\bmy {_PERSON} (?:has )?(?:passed away|died)\b")
_OF_OTHERS: Final = _rule(rf"my {_PERSON}(?:['’]s| is) an? (?:[\w-]+ ){{0,2}}(?P<what>{_OCCUPATIONS})\b")
_OCCASIONS: Final = (
    r"(?:appointment|meeting|deadline|exam|test|interview|flight|surgery|operation|check-?up|wedding|conference|concert"
    r"|presentation|reservation|booking|ceremony|workshop|competition|tournament|race|marathon|recital|audition|demo"
    r"|train|delivery|visit|due date|party|trip|tour|show|game)s?"
)
_OCCASION: Final = _rule(rf"\b{_OCCASIONS}$")
#: Appointments, and plans of the speaker, if a time is named.
_TASK: Final = _rule(
    rf"(?:my|our|the) (?P<what>(?:[\w'’-]+ ){{0,4}}{_OCCASIONS}) (?:is|are|has been|was|got|moved)\b"
    rf"|(?:I|we)(?:['’]ve| have| got| have got|['’]ve got) (?:an?|my|our|the|another|some) (?:[\w'’-]+ ){{0,4}}"
    rf"{_OCCASIONS}\b"
    r"|(?:I|we)(?:['’]m|['’]re| am| are) (?:\w+ )?(?:going|planning|flying|leaving|travel\w*|moving|meeting|seeing"
    r"|starting|getting|hosting|visiting|taking|having|performing|heading)\b"
    r"|(?:I|we)(?:['’]ll| will| have to| need to| must| plan to| should) "
    r"(?!see you|talk|chat|let you|tell|try|catch|be\b|definitely|check|keep|think|get back|take a look"
    r"|make sure|say|admit)\w"
)
_UPCOMING: Final = _rule(r"\b(?:my|our) upcoming \w")
_PAST: Final = _rule(
    r"\b(?:had|went|was|were|did|last|yesterday|ago|finished|just (?:got|had|came|did)|been|hope|hoping)\b"
)
#: Plans that are given up or denied, and sleep.
_NO_TASK: Final = _rule(
    r"\b(?:not|never|no longer|cancel\w{0,7}|called off|skip\w{0,4}|bed|sleep)\b|n['’]t\b(?! forget)"
)
_CANCELLED: Final = (
    _rule(
        rf"\b(?:my|our|the) (?P<what>(?:[\w'’-]+ ){{0,4}}{_OCCASIONS})\b[^,;:!?]{{0,40}}"
        r" (?:is|was|are|were|been|got|gets) (?:now )?(?:cancell?ed|called off)"
    ),
    _rule(
        r"\bI(?:['’]ve| have| had to| just)? cancell?(?:ed)? (?:my|our|the)"
        rf" (?P<what>(?:[\w'’-]+ ){{0,4}}{_OCCASIONS})\b"
    ),
)
_NOT: Final = _rule(r"\b(?:not|never)\b|n['’]t\b")
#: Requests for a reminder, with or without a time.
_TO_DO: Final = _rule(
    r"(?:(?:can|could|would|will) you )?(?:please )?(?:remind me (?:to|about)|don['’]t let me forget"
    r"|to-?do:) \w"
)
_SLOTS: Final = _rule(
    r"\b(?:phone|mobile|telephone|number|e-?mail|address|birthday|nickname|height|weight|age|job|employer|school|car"
    r"|doctor|dentist|therapist|vet|boss|manager|landlord|language|timezone|size|username|teacher|lawyer|home)\b"
)
_PERSON_SLOTS: Final = _rule(r"\b(?:doctor|dentist|therapist|vet|boss|manager|landlord|teacher|lawyer)$")
_CAPITAL: Final = re.compile(r"[A-Z]\w")
_VALUE: Final = re.compile(r"[A-Z\d@]|^an? ")
_FREE: Final = _rule(r"\b(?:nickname|username)$")
_OF_SPEAKER: Final = ("home", "employer", "occupation", "school", "age", "weight")
_MINE: Final = _rule(r"^(?:my|our) (?:[\w'’-]+ ){0,3}[\w'’-]+$")
_OF_OTHER: Final = _rule(rf"^(?:home|employer) {_PERSON}\b")
_OF_RELATION: Final = _rule(rf"\b(?:{_RELATIONS})\b")
_THIRD_PERSON: Final = _rule(r"^(?:the )?user(?:(?P<own>['’]s)| (?P<verb>is|has|was|[a-z]{3,30}s)\b)")
_FIRST: Final = {"is": "I am", "has": "I have", "was": "I was"}


def may_tell(sentence: str) -> bool:
    """Return whether the sentence may tell something. This is much cheaper than the rules."""
    return _CUE.search(sentence) is not None


def facts(sentence: str) -> Iterator[Fact]:
    """Yield what the sentence tells. "The user likes tea" is read as "I like tea"."""
    sentence = _in_first_person(sentence)
    unreal = _UNREAL.search(sentence) is not None
    if not unreal and not _NOT.search(sentence):
        for rule in _CANCELLED:
            if gone := rule.search(sentence):
                yield Fact(Part.TASKS, key_of("cancelled", gone["what"]), ends=True)
                return
    places = [found.end() for found in _BEGINS.finditer(sentence)]
    stated = list(english_statements.stated(sentence))
    if task := _task(sentence, places, stated):
        yield task
    if not unreal:
        yield from _about(sentence, places, stated)
        yield from _people(sentence, places)
        yield from _likes(sentence, places)


def _first(rule: re.Pattern[str], sentence: str, places: list[int]) -> re.Match[str] | None:
    for place in places:
        if found := rule.match(sentence, place):
            return found
    return None


def _task(sentence: str, places: list[int], stated: list[Found]) -> Fact | None:
    if may_have_times(sentence):
        if _NO_TASK.search(sentence):
            return None
        if moved := next((one for one in stated if _OCCASION.search(one.about)), None):
            return Fact(Part.TASKS, key_of("task", moved.about), dated=True)
        found = _first(_TASK, sentence, places)
        if (found or _UPCOMING.search(sentence)) and not _PAST.search(sentence):
            return Fact(Part.TASKS, key_of("task", found["what"] or sentence if found else sentence), dated=True)
    return Fact(Part.TASKS, key_of("task", sentence)) if _first(_TO_DO, sentence, places) else None


def _about(sentence: str, places: list[int], stated: list[Found]) -> Iterator[Fact]:
    for one in stated:
        if one.own and (found := _of_statement(one)):
            yield found
    for key, rule in _ABOUT:
        if _first(rule, sentence, places):
            yield Fact(Part.ABOUT, (key,))
    if _GREETED.match(sentence):
        yield Fact(Part.ABOUT, ("name",))
    if _HOME_COUNTRY.search(sentence):
        yield Fact(Part.ABOUT, ("origin",))
    if _first(_HEALTH, sentence, places):
        yield Fact(Part.ABOUT, key_of("health", sentence))


def _of_statement(found: Found) -> Fact | None:
    about = " ".join(found.about.lower().split())
    if about not in _OF_SPEAKER and not _MINE.match(about) and not _OF_OTHER.match(about):
        return None
    if about not in _OF_SPEAKER and not _OF_OTHER.match(about) and not _is_value(about, found.value):
        return None
    about = about.removeprefix("my ").removeprefix("our ")
    if _OF_RELATION.search(about):
        return Fact(Part.PEOPLE, (about,), rank=1)
    if about in _OF_SPEAKER or (_SLOTS.search(about) and not _OCCASION.search(about)):
        return Fact(Part.ABOUT, (about,))
    return None


def _is_value(about: str, value: str) -> bool:
    """Return whether it names something, and is not a state: of a person a name, and else a name or number."""
    if _PERSON_SLOTS.search(about):
        return _CAPITAL.match(value) is not None
    return _VALUE.search(value) is not None or _FREE.search(about) is not None


def _people(sentence: str, places: list[int]) -> Iterator[Fact]:
    if _PEOPLE_CUES.isdisjoint(_WORD.findall(sentence.lower())):
        return
    for rule in _RELATED:
        if found := rule.search(sentence):
            yield Fact(Part.PEOPLE, (found["name"].lower(),))
            return
    if found := _DEATH.search(sentence):
        yield Fact(Part.PEOPLE, (found["who"].lower(), "died"), rank=1)
    elif found := _first(_OF_OTHERS, sentence, places):
        yield Fact(Part.PEOPLE, (found["who"].lower(), "occupation"), rank=1)
    elif found := _first(_FAMILY, sentence, places):
        yield Fact(Part.PEOPLE, key_of("have", found["who"]))


def _likes(sentence: str, places: list[int]) -> Iterator[Fact]:
    for rule in _LIKES:
        if (found := _first(rule, sentence, places)) and not _POINTS.search(found["what"]):
            yield Fact(Part.PREFERENCES, key_of("likes", found["what"]))
            return


def _in_first_person(sentence: str) -> str:
    told = _THIRD_PERSON.match(sentence)
    if told is None:
        return sentence
    if told["own"]:
        return f"My{sentence[told.end() :]}"
    verb = told["verb"].lower()
    return f"{_FIRST.get(verb) or f'I {verb[:-1]}'}{sentence[told.end() :]}"
