"""The pictures of docs/dashboard.md, taken again: `python -m tests.ui.screenshots`."""

from __future__ import annotations

import tempfile
from io import BytesIO
from pathlib import Path
from typing import Final

from PIL import Image

from tests.ui.chromium import NARROW, Scheme, Seen, browser, opened
from tests.ui.demo import BROKEN, UNKNOWN_ROLE, kept_demo
from tests.ui.screens import SCREENS, go

FOLDER: Final = Path(__file__).parents[2] / "docs" / "dashboard"
SIZE: Final = (1180, 800)
#: Colours of a picture: few are enough for pages, and keep it below 100 kB.
COLOURS: Final = 64
DARK: Final = ("live-flow", "lifecycle")


def save(picture: bytes, name: str) -> None:
    reduced = Image.open(BytesIO(picture)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    reduced.save(FOLDER / f"{name}.png", optimize=True)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, kept_demo(Path(folder)) as demo, browser() as running:
        seen = Seen(demo.base)
        demo.produce(BROKEN, UNKNOWN_ROLE)
        page_of_docs = (FOLDER.parent / "dashboard.md").read_text(encoding="utf-8")
        for screen in SCREENS:
            if f"dashboard/{screen.name}.png" not in page_of_docs:
                continue
            scheme: Scheme = "dark" if screen.name in DARK else "light"
            with opened(running, seen, scheme, SIZE) as page:
                if screen.name == "live-flow":
                    page.goto(demo.base + screen.path)
                    demo.talk(0)
                    page.locator(".chip.memory").first.wait_for()
                go(page, demo.base, screen)
                if screen.name == "dead-letters":
                    page.locator("article summary").last.click()
                save(page.screenshot(), screen.name)
        with opened(running, seen, "light", NARROW) as page:
            go(page, demo.base, next(screen for screen in SCREENS if screen.name == "overview"))
            save(page.screenshot(), "phone")


if __name__ == "__main__":
    main()
