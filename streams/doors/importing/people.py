"""Imported chats between people, for example of WhatsApp.

One person is the user, for whom memories are made. All others have the role of the assistant. Every message keeps the
name of its speaker, so the memories show who said what.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from schemas.conversations import Role
from schemas.errors import BadRecord
from streams.doors.importing.chats import Chat, Turn


@dataclass(frozen=True, slots=True)
class Spoken:
    """One message of a chat between people. `at` is its time in epoch ms, `place` its position in the chat, from 1.

    `name` is the speaker's name, and `also` has other names of the speaker, such as an id.
    """

    place: int
    name: str
    text: str
    at: int | None
    id: str | None = None
    also: tuple[str, ...] = ()

    def is_by(self, names: Collection[str]) -> bool:
        """Return True if the speaker has one of the `names`, which must be case-folded."""
        return any(name.casefold() in names for name in (self.name, *self.also))


@dataclass(frozen=True, slots=True)
class Talk:
    """A chat between people.

    `owner` has the names of the person who exported the chat. It is empty if the file does not name this person.
    `left_out` and `problems` have the same meaning as in `Chat`. `of_many` is True if the file can have several
    chats, because then the user may have written nothing in this chat.
    """

    spoken: Sequence[Spoken]
    id: str | None = None
    left_out: int = 0
    problems: tuple[BadRecord, ...] = ()
    owner: tuple[str, ...] = ()
    of_many: bool = False

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(one.name for one in self.spoken))

    def is_by_any_of(self, names: Iterable[str]) -> bool:
        mine = _folded(names)
        return any(one.is_by(mine) for one in self.spoken)

    def chat(self, names: Iterable[str]) -> Chat:
        """Convert to a `Chat`. A speaker with one of the `names` becomes the user, and all others the assistant."""
        mine = _folded(names)
        turns = tuple(
            Turn(
                one.place,
                Role.USER if one.is_by(mine) else Role.ASSISTANT,
                one.text,
                one.at,
                one.id,
                one.name,
            )
            for one in self.spoken
        )
        return Chat(turns, self.id, None, self.left_out, self.problems)


def _folded(names: Iterable[str]) -> set[str]:
    return {name.casefold() for name in names}
