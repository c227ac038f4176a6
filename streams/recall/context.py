"""The context of a session: its newest exchanges and notes, the best memories, and one prompt with all of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from schemas.memories import SHORT_TERM, SHOWN_FROM, SearchHit
from streams.intake.user_sessions import WindowExchange
from streams.models.token_count import estimated_tokens
from streams.recall.budget import fitted
from streams.recall.dates import ReferenceDate
from streams.recall.profile import MOST_TOKENS as MOST_PROFILE_TOKENS
from streams.recall.profile import Profile
from streams.recall.prompt import Contents, LeftOut, Prompt
from streams.recall.windows import ShownWindow
from streams.telemetry.recovery_progress import Behind
from tables.windows.session_notes import Note

#: The limits of `max_tokens`. With fewer tokens, the headings of a prompt might not fit.
LEAST_TOKENS, MOST_TOKENS = 200, 1_000_000
#: The maximum number of memories for a prompt of limited length.
MOST_MEMORIES: Final = 1_000


@dataclass(frozen=True, slots=True)
class ContextQuery:
    """What is asked of a session's context. If `text` is empty, the query is the user's last message.

    `exchanges` and `memories` are maximum numbers, and `max_tokens` is the maximum length of the prompt. If all of
    the user's data is not recovered yet, `partial` asks for what there is. With `profile`, the prompt begins with the
    user's profile. See `Query` for the other fields; `as_of` is for memories alone.
    """

    user_id: str
    session_id: str
    text: str = ""
    exchanges: int | None = None
    memories: int | None = None
    max_tokens: int | None = None
    touch: bool = True
    short_term: bool = True
    partial: bool = False
    reference: ReferenceDate | None = None
    as_of: int | None = None
    profile: bool = False

    @property
    def profile_tokens(self) -> int:
        """The maximum length of the profile: at most a third of the prompt."""
        return min(MOST_PROFILE_TOKENS, (self.max_tokens or MOST_TOKENS) // 3)

    def most_memories(self, usual: int) -> int:
        """Return the maximum number of memories, if `usual` is that of a request that limits nothing."""
        if self.memories is not None:
            return self.memories
        return usual if self.max_tokens is None else MOST_MEMORIES


@dataclass(frozen=True, slots=True)
class Context:
    """The context that an assistant needs before it answers. `tokens` is the estimated length of the prompt."""

    exchanges: Sequence[WindowExchange]
    notes: Sequence[Note]
    hits: Sequence[SearchHit]
    prompt: str
    tokens: int
    left_out: LeftOut
    reference: ReferenceDate
    behind: Sequence[Behind] = ()
    profile: Profile | None = None


def context_of(
    asked: ContextQuery,
    reference: ReferenceDate,
    hits: Sequence[SearchHit],
    notes: Sequence[Note],
    window: Sequence[WindowExchange],
    *,
    usual: int,
    profile: Profile | None = None,
) -> Context:
    """Return a context of these hits (best first), notes and exchanges (oldest first).

    The prompt repeats nothing: a hit is left out of it if it shows the hit's exchange or note, or if the profile has
    all of it. If the length is limited, pinned memories come first, and others of low relevance only if they are
    among the `usual` best.
    """
    who, whole = (profile.text, profile.whole) if profile else ("", frozenset())
    prompt, exchanges, left_out = Prompt(reference, asked.as_of, who), [one.exchange for one in window], LeftOut()
    noted = {note.id for note in notes} | whole
    if asked.max_tokens is None:
        beside = ShownWindow.of(asked.session_id, exchanges)
        hits = [hit for hit in hits if hit.state != SHORT_TERM or not beside.repeats(hit)]
        known = [hit for hit in hits if hit.id not in noted and not beside.repeats(hit)]
        contents = Contents(known, notes, exchanges)
    else:
        if asked.memories is None:
            hits = [hit for place, hit in enumerate(hits) if place < usual or hit.relevance >= SHOWN_FROM]
        hits = sorted(hits, key=lambda hit: not hit.pinned)
        known = [hit for hit in hits if hit.id not in noted]
        contents, left_out = fitted(prompt, Contents(known, notes, exchanges), asked.max_tokens, asked.session_id)
        window = window[len(window) - len(contents.exchanges) :]
        beside = ShownWindow.of(asked.session_id, contents.exchanges)
        kept = {hit.id for hit in contents.hits} | {note.id for note in contents.notes} | whole
        hits = [hit for hit in hits if hit.id in kept or (hit.state != SHORT_TERM and beside.repeats(hit))]
    text = prompt.text(contents, left_out)
    return Context(window, contents.notes, hits, text, estimated_tokens(text), left_out, reference, profile=profile)
