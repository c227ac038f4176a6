"""The screens with real data: their addresses, and what of the data is on them."""

from __future__ import annotations

import re
from typing import NamedTuple

from playwright.sync_api import Page


class Screen(NamedTuple):
    """Where `click` is a selector, it leads from the address to the screen."""

    name: str
    path: str
    shows: str
    click: str = ""


SCREENS = (
    Screen("overview", "/ui/overview", "Ready."),
    Screen("live-flow", "/ui/flow", "Message → exchange → decision → memory"),
    Screen("sessions", "/ui/sessions", "maya-1031"),
    Screen("session", "/ui/session?user_id=maya&session_id=maya-1031", "What would change it."),
    Screen("users", "/ui/memories", "lin"),
    Screen("memories", "/ui/memories?user_id=maya", "1 to "),
    Screen("memory", "/ui/memories?user_id=maya&order=importance", "Origin", "#found td.text a >> nth=0"),
    Screen("search-lab", "/ui/search?user_id=maya&session_id=maya-1031&q=What+am+I+allergic+to%3F", "By meaning"),
    Screen("lifecycle", "/ui/lifecycle", "Cleanup preview"),
    Screen("dead-letters", "/ui/dead-letters", "the value is not JSON"),
    Screen("my-memory", "/ui/me?user_id=maya", "Memories about maya"),
    Screen("notes", "/ui/me?user_id=maya", "Notes of", "main a[href*='/ui/me/notes/'] >> nth=0"),
)


def go(page: Page, base: str, screen: Screen) -> None:
    """Open it, and wait until it is drawn."""
    page.goto(base + screen.path)
    if screen.click:
        page.locator(screen.click).click()
        page.wait_for_load_state()
    page.get_by_text(re.compile(re.escape(screen.shows))).first.wait_for()
    if page.locator("[data-chart]").count():
        page.locator("[data-chart] canvas").first.wait_for()
