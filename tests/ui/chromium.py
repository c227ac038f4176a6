"""Debian's Chromium, driven by Playwright: what it loads, says and shows is watched."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from playwright.sync_api import Browser, Page, sync_playwright

Scheme = Literal["light", "dark"]
#: Nothing but the pages is asked for, whatever a browser does by itself.
FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDE, NARROW = (1280, 900), (390, 844)
AXE: Final = Path(__file__).parent / "axe" / "axe.min.js"


def executable() -> str | None:
    """Where it is; `make test-all` installs it where it may."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@dataclass
class Seen:
    """What pages said on the console, and which other hosts they asked."""

    base: str
    complaints: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        page.on("console", lambda said: self._say(said.type, said.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self._ask(request.url))

    def _say(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(text)

    def _ask(self, url: str) -> None:
        self.asked.append(url)
        if not url.startswith((f"{self.base}/ui", "data:")):
            self.elsewhere.append(url)


@contextmanager
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=executable(), args=list(FLAGS))
        try:
            yield running
        finally:
            running.close()


@contextmanager
def opened(running: Browser, seen: Seen, scheme: Scheme = "light", size: tuple[int, int] = WIDE) -> Iterator[Page]:
    """A page of a browser that nobody has used."""
    context = running.new_context(color_scheme=scheme, viewport={"width": size[0], "height": size[1]})
    try:
        page = context.new_page()
        seen.watch(page)
        yield page
    finally:
        context.close()


def findings(page: Page) -> list[str]:
    """What axe calls serious or critical, with where it is."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    result: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {node['target']} {node.get('failureSummary', '')}"
        for one in result["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
