"""The screen of dead letters: the unusable records, their places and the reasons.

Each record can be repaired and produced again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from schemas.errors import BadRecord
from schemas.places import Place
from streams.doors.http.partial import ShownBehind
from streams.doors.ui.pages import Pages
from streams.doors.ui.session import Form
from streams.doors.ui.viewer import Looking, Viewer
from streams.service import MemoryService
from streams.worker.dead_letter_repair import Letter, Repairing

#: The maximum number of repaired dead letters that are remembered. The newest are kept.
MOST_REPAIRED: Final = 1_000
#: The maximum number of seconds that a repair waits until the new record has taken effect.
WAIT_SECONDS: Final = 5.0


class Repaired:
    """The dead letters that this worker has repaired since its start.

    For each dead letter, the object stores the place of the record that was produced as its repair.
    """

    def __init__(self) -> None:
        self._places: dict[tuple[int, int], Place] = {}

    def note(self, letter: Letter, place: Place) -> None:
        self._places[letter.partition, letter.offset] = place
        while len(self._places) > MOST_REPAIRED:
            del self._places[next(iter(self._places))]

    def place(self, letter: Letter) -> Place | None:
        return self._places.get((letter.partition, letter.offset))


def dead_letter_routes(service: MemoryService, pages: Pages) -> APIRouter:
    """`/ui/dead-letters`."""
    api = APIRouter(include_in_schema=False)
    repairing, repaired = Repairing(service.settings.kafka, service.topics), Repaired()

    def screen(viewer: Viewer, letters: Sequence[Letter], status: int = 200, **more: Any) -> HTMLResponse:
        lag = [reading.lag for reading in service.live.readings]
        values = {
            "letters": letters,
            "kinds": Counter(letter.error_type for letter in letters).most_common(),
            "repaired": repaired.place,
            "takes": repairing.takes,
            "behind": ShownBehind.each(service.health.behind()),
            "waiting": _by_topic(lag[-1]) if lag else {},
            "given": None,
            "problem": "",
            "done": "",
            "kind": "",
            **more,
        }
        answer = pages.page("dead_letters.html", viewer, "/ui/dead-letters", **values)
        answer.status_code = status
        return answer

    @api.get("/ui/dead-letters")
    async def dead_letters(
        viewer: Looking,
        kind: Annotated[str, Query(max_length=256)] = "",
        done: Annotated[str, Query(max_length=256)] = "",
    ) -> HTMLResponse:
        """The newest dead letters."""
        letters = await repairing.newest()
        shown = [one for one in letters if not kind or one.error_type == kind]
        kinds = Counter(letter.error_type for letter in letters).most_common()
        return screen(viewer, shown, kinds=kinds, kind=kind, done=_said(done))

    @api.post("/ui/dead-letters/{partition}/{offset}")
    async def repair(viewer: Looking, partition: int, offset: int, fields: Form) -> Response:
        """Produce the form's value again; if it still cannot be read, show the form with the reason."""
        letter = await repairing.one(partition, offset)
        if letter is None:
            raise HTTPException(404, f"dead-letters[{partition}]@{offset} is no longer in the topic")
        try:
            mended = repairing.mended(letter, fields.get("value", ""))
        except BadRecord as exc:
            given = {"value": fields.get("value", ""), "at": (partition, offset)}
            return screen(viewer, [letter], 422, given=given, problem=str(exc))
        place, seen = await service.writes.produce_again(*mended, WAIT_SECONDS)
        repaired.note(letter, place)
        query = urlencode({"done": str(place) if seen else f"{place} waiting"})
        return RedirectResponse(f"/ui/dead-letters?{query}", 303)

    return api


def _said(done: str) -> str:
    """Return the message that the page shows after a repair."""
    if not done:
        return ""
    place, _, waits = done.partition(" ")
    return f"Produced again at {place}: the record {'waits to be read' if waits else 'has taken effect'}."


def _by_topic(lag: Mapping[tuple[str, int], int]) -> dict[str, int]:
    waiting: Counter[str] = Counter()
    for (topic, _), records in lag.items():
        waiting[topic] += records
    return dict(waiting)
