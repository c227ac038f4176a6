"""Render the dashboard's templates. All texts are escaped, because none of them is trusted."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import jinja2
import orjson
from fastapi.responses import HTMLResponse

from streams.doors.ui.files import VERSION
from streams.doors.ui.viewer import Viewer
from streams.intake.rules.decision_wording import lasting
from streams.recall.profile import HEADINGS


class Screen(NamedTuple):
    """A screen in the dashboard's navigation. If `admin` is true, only administrators see the entry."""

    path: str
    name: str
    hint: str
    admin: bool = False


SCREENS: Final = (
    Screen("/ui/overview", "Overview", "State of the workers"),
    Screen("/ui/flow", "Live flow", "What happens now"),
    Screen("/ui/sessions", "Sessions", "Windows and decisions"),
    Screen("/ui/memories", "Memories", "All users' memories"),
    Screen("/ui/search", "Search lab", "How a question is answered"),
    Screen("/ui/lifecycle", "Lifecycle", "How memories age"),
    Screen("/ui/dead-letters", "Dead letters", "Unusable records", admin=True),
)
MINE: Final = Screen("/ui/me", "My memory", "See, correct, forget")


class Pages:
    """Renders `templates/`."""

    def __init__(self) -> None:
        self._jinja = jinja2.Environment(
            loader=jinja2.PackageLoader("streams.doors.ui"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._jinja.filters |= {
            "when": when,
            "day": lambda at: when(at)[:10],
            "clock": lambda at: when(at)[11:19],
            "lasting": lasting,
            "number": number,
            "data": lambda value: orjson.dumps(value, default=str).decode(),
            "short": short,
        }
        self._jinja.globals |= {"version": VERSION, "screens": SCREENS, "mine": MINE, "headings": HEADINGS}

    def fragment(self, template: str, **values: Any) -> str:
        return self._jinja.get_template(template).render(**values)

    def page(self, template: str, viewer: Viewer, here: str, **values: Any) -> HTMLResponse:
        """Render a whole page. `here` is the path of its screen, which the navigation marks as the current one."""
        return HTMLResponse(self.fragment(template, viewer=viewer, here=here, **values))

    def part(self, template: str, viewer: Viewer, **values: Any) -> HTMLResponse:
        """Render a fragment that replaces a part of a page."""
        return HTMLResponse(self.fragment(template, viewer=viewer, **values))


def when(at: int | str) -> str:
    """Return a time as text, in UTC and with seconds.

    `at` is in epoch ms, or in the form of the API's timestamps.

    >>> when("2026-02-01T08:30:00.000Z")
    '2026-02-01 08:30:00'
    """
    if isinstance(at, str):
        return at[:19].replace("T", " ")
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def number(value: float, digits: int = 0) -> str:
    """Return a number as text, with thin spaces between thousands.

    >>> number(12345.678, 1)
    '12\u2009345.7'
    """
    return f"{value:,.{digits}f}".replace(",", "\u2009")


def short(text: str, chars: int = 160) -> str:
    """Return the text on one line, shortened to at most `chars` characters."""
    line = " ".join(text.split())
    return line if len(line) <= chars else f"{line[: chars - 1]}…"
