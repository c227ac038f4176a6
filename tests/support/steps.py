"""Counts the steps that patterns take: a measure of backtracking that no other load on the machine changes.

`re` does not tell how often it tried. This tries in the same order as `re` does, in Python, and counts each try of a
character, of an alternative, and of one more repetition. A pattern that backtracks without bound takes so many steps
that it is stopped: see `TooManySteps`.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any, Final
from unittest import mock

#: Repeated, they are what patterns take longest for: runs, and what nearly ends each time.
HOSTILE_PIECES: Final = (
    "a", " ", "\n", "?", '"', "'", "1", ".", "-", "[", "(", ":", "_", "我", "。", "吗", "é", "😀", "ab ", "a?", "a\n",
    "1.", "a'", " \n", "?!", '？"', "I ", "aA0/", "a" * 99 + "?" * 99 + '"' * 99, "a" + " " * 99, "really ", "请你",
    "<think>", "<think></think>", "\ue200cite\ue202", "【1†",
)  # fmt: skip
#: What is left of the pattern, from a place in the text: where the match ends, or None.
Rest = Callable[[int], int | None]
#: Of a part of the pattern: from a place in the text, with what is left behind the part.
Part = Callable[[int, Rest], int | None]

_REPEATS: Final = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)
_ONE_CHARACTER: Final = (_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN)
#: Python's own limit is met by a group that is repeated some hundred times.
_DEPTH: Final = 200_000


class TooManySteps(Exception):
    """The pattern took more steps than it may."""


class Steps:
    """The steps within `counted()`, up to `most`."""

    def __init__(self, most: int = 10_000_000) -> None:
        self.total, self._most = 0, most
        self._patterns: dict[re.Pattern[str], _Tried] = {}

    def again(self, most: int) -> None:
        """From nothing, up to another number. The patterns are known by now, which saves reading them."""
        self.total, self._most = 0, most

    def one(self) -> None:
        self.total += 1
        if self.total > self._most:
            raise TooManySteps

    @contextlib.contextmanager
    def counted(self, *owners: ModuleType | object) -> Iterator[None]:
        """Of all patterns that are attributes of these modules and objects, or in a list or tuple there."""
        depth = sys.getrecursionlimit()
        with contextlib.ExitStack() as stack:
            for owner in owners:
                for name, value in vars(owner).copy().items():
                    if (counting := self._counting(value)) is not value:
                        stack.enter_context(mock.patch.object(owner, name, counting))
            sys.setrecursionlimit(_DEPTH)
            try:
                yield
            finally:
                sys.setrecursionlimit(depth)

    def of(self, pattern: re.Pattern[str]) -> _Tried:
        """The pattern with a count; texts are looked at as the pattern itself looks at them."""
        if pattern not in self._patterns:
            self._patterns[pattern] = _Tried(pattern, self)
        return self._patterns[pattern]

    def _counting(self, value: Any) -> Any:
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
            return self.of(value)
        if type(value) in (list, tuple) and any(isinstance(one, re.Pattern) for one in value):
            return type(value)(self._counting(one) for one in value)
        return value


class _Tried:
    """A compiled pattern. Its answers are those of `re`, which is asked when the steps are counted: not before."""

    def __init__(self, pattern: re.Pattern[str], steps: Steps) -> None:
        self._pattern, self.pattern, self.flags, self.groups = pattern, pattern.pattern, pattern.flags, pattern.groups
        parsed = _parser.parse(pattern.pattern, pattern.flags)
        self._tree = _Tree(parsed.state, steps)
        self._root = self._tree.sequence(parsed, pattern.flags)

    def end(self, text: str, start: int, *, whole: bool = False) -> int | None:
        """Where a match that begins at `start` ends."""
        self._tree.text, self._tree.groups = text, {}
        return self._root(start, lambda end: None if whole and end != len(text) else end)

    def match(self, text: str, pos: int = 0, endpos: int = sys.maxsize) -> re.Match[str] | None:
        self.end(text[:endpos], pos)
        return self._pattern.match(text, pos, endpos)

    def fullmatch(self, text: str, pos: int = 0, endpos: int = sys.maxsize) -> re.Match[str] | None:
        self.end(text[:endpos], pos, whole=True)
        return self._pattern.fullmatch(text, pos, endpos)

    def search(self, text: str, pos: int = 0, endpos: int = sys.maxsize) -> re.Match[str] | None:
        self._looked(text[:endpos], pos)
        return self._pattern.search(text, pos, endpos)

    def finditer(self, text: str, pos: int = 0, endpos: int = sys.maxsize) -> Iterator[re.Match[str]]:
        beyond: int | None = pos
        while beyond is not None:
            beyond = self._looked(text[:endpos], beyond)
        return self._pattern.finditer(text, pos, endpos)

    def findall(self, text: str) -> list[Any]:
        self.finditer(text)
        return self._pattern.findall(text)

    def split(self, text: str, maxsplit: int = 0) -> list[Any]:
        self.finditer(text)
        return self._pattern.split(text, maxsplit)

    def sub(self, by: str | Callable[[re.Match[str]], str], text: str, count: int = 0) -> str:
        self.finditer(text)
        return self._pattern.sub(by, text, count)

    def _looked(self, text: str, start: int) -> int | None:
        """Where to look next: behind the first match, one further if that is empty. None if there is no match."""
        for place in range(start, len(text) + 1):
            if (end := self.end(text, place)) is not None:
                return max(end, place + 1)
        return None


class _Tree:
    """Makes parts of a parsed pattern, and holds the text that they are tried on."""

    def __init__(self, state: Any, steps: Steps) -> None:
        self.text, self.groups = "", dict[int, tuple[int, int]]()
        self._state, self._steps = state, steps

    def sequence(self, items: Iterable[Any], flags: int) -> Part:
        parts = [self._part(op, given, flags) for op, given in items]

        def tried(place: int, rest: Rest, at: int = 0) -> int | None:
            if at == len(parts):
                return rest(place)
            return parts[at](place, lambda end: tried(end, rest, at + 1))

        return parts[0] if len(parts) == 1 else tried

    def _part(self, op: Any, given: Any, flags: int) -> Part:
        if op in _ONE_CHARACTER:
            return self._character(self._fits(op, given, flags))
        if op is _constants.AT:
            return self._place(op, given, flags)
        if op is _constants.BRANCH:
            return self._branch([self.sequence(one, flags) for one in given[1]])
        if op is _constants.SUBPATTERN:
            group, more, fewer, inner = given
            return self._group(group, self.sequence(inner, (flags | more) & ~fewer))
        if op is _constants.ATOMIC_GROUP:
            return self._atomic(self.sequence(given, flags))
        if op in (_constants.ASSERT, _constants.ASSERT_NOT):
            return self._around(given[0], self.sequence(given[1], flags), given[1], op is _constants.ASSERT)
        if op in _REPEATS:
            return self._repeat(op, given, flags)
        if op is _constants.GROUPREF:
            return self._again(given)
        raise NotImplementedError(str(op))

    def _fits(self, op: Any, given: Any, flags: int) -> Callable[[str], bool]:
        one = self._compiled([(op, given)], flags)
        known: dict[str, bool] = {}

        def fits(character: str) -> bool:
            if character not in known:
                known[character] = one.match(character) is not None
            return known[character]

        return fits

    def _compiled(self, items: Sequence[Any], flags: int) -> re.Pattern[str]:
        state = _parser.State()
        state.flags, state.str = flags, ""
        compiled: re.Pattern[str] = _compiler.compile(_parser.SubPattern(state, list(items)), flags)
        return compiled

    def _character(self, fits: Callable[[str], bool]) -> Part:
        def tried(place: int, rest: Rest) -> int | None:
            self._steps.one()
            return rest(place + 1) if place < len(self.text) and fits(self.text[place]) else None

        return tried

    def _place(self, op: Any, given: Any, flags: int) -> Part:
        one = self._compiled([(op, given)], flags)

        def tried(place: int, rest: Rest) -> int | None:
            self._steps.one()
            return rest(place) if one.match(self.text, place) else None

        return tried

    def _branch(self, ways: Sequence[Part]) -> Part:
        def tried(place: int, rest: Rest) -> int | None:
            for way in ways:
                if (end := way(place, rest)) is not None:
                    return end
            return None

        return tried

    def _group(self, group: int | None, inner: Part) -> Part:
        if group is None:
            return inner

        def tried(place: int, rest: Rest) -> int | None:
            def noted(end: int) -> int | None:
                before = self.groups.get(group)
                self.groups[group] = (place, end)
                if (found := rest(end)) is None:
                    if before is None:
                        del self.groups[group]
                    else:
                        self.groups[group] = before
                return found

            return inner(place, noted)

        return tried

    def _atomic(self, inner: Part) -> Part:
        def tried(place: int, rest: Rest) -> int | None:
            end = inner(place, lambda end: end)
            return None if end is None else rest(end)

        return tried

    def _around(self, direction: int, inner: Part, items: Any, wanted: bool) -> Part:
        """A lookahead, or a lookbehind of the pattern's own fixed width."""
        back = items.getwidth()[0] if direction < 0 else 0

        def tried(place: int, rest: Rest) -> int | None:
            begin = place - back
            found = begin >= 0 and inner(begin, lambda end: end) is not None
            return rest(place) if found is wanted else None

        return tried

    def _again(self, group: int) -> Part:
        def tried(place: int, rest: Rest) -> int | None:
            self._steps.one()
            if group not in self.groups:
                return None
            begin, end = self.groups[group]
            said = self.text[begin:end]
            return rest(place + len(said)) if self.text.startswith(said, place) else None

        return tried

    def _repeat(self, op: Any, given: Any, flags: int) -> Part:
        least, most, items = given
        if len(items) == 1 and items[0][0] in _ONE_CHARACTER and op is not _constants.MIN_REPEAT:
            repeated = self._characters(
                least, most, self._fits(items[0][0], items[0][1], flags), op is _constants.MAX_REPEAT
            )
        elif op is _constants.MIN_REPEAT:
            repeated = self._fewest(least, most, self.sequence(items, flags))
        else:
            repeated = self._longest(least, most, self.sequence(items, flags))
            if op is _constants.POSSESSIVE_REPEAT:
                repeated = self._atomic(repeated)
        return repeated

    def _characters(self, least: int, most: int, fits: Callable[[str], bool], gives_back: bool) -> Part:
        def tried(place: int, rest: Rest) -> int | None:
            end, last = place, min(len(self.text), place + int(most))
            while end < last and fits(self.text[end]):
                self._steps.one()
                end += 1
            self._steps.one()
            for stop in (
                range(end, place + least - 1, -1) if gives_back else range(end, max(end, place + least) - 1, -1)
            ):
                self._steps.one()
                if (found := rest(stop)) is not None:
                    return found
            return None

        return tried

    def _longest(self, least: int, most: int, inner: Part) -> Part:
        def tried(place: int, rest: Rest, times: int = 0) -> int | None:
            self._steps.one()

            def more(end: int) -> int | None:
                return None if end == place and times >= least else tried(end, rest, times + 1)

            if times < int(most) and (found := inner(place, more)) is not None:
                return found
            return rest(place) if times >= least else None

        return tried

    def _fewest(self, least: int, most: int, inner: Part) -> Part:
        def tried(place: int, rest: Rest, times: int = 0) -> int | None:
            self._steps.one()
            if times >= least and (found := rest(place)) is not None:
                return found

            def more(end: int) -> int | None:
                return None if end == place and times >= least else tried(end, rest, times + 1)

            return inner(place, more) if times < int(most) else None

        return tried
