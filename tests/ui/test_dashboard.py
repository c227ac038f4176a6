"""Every screen in a real Chromium, with real data: it loads, speaks to nobody else, and is usable by everybody."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright comes with the extra test-all")

from playwright.sync_api import Browser, expect

from tests.support.waiting import PATIENCE
from tests.ui.chromium import NARROW, Scheme, Seen, browser, executable, findings, opened
from tests.ui.demo import BROKEN, UNKNOWN_ROLE, Demo, kept_demo
from tests.ui.screens import SCREENS, Screen, go

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(executable() is None, reason="there is no chromium: apt-get install chromium"),
]

#: A picture of each, to look at.
PICTURES = Path(__file__).parents[2] / "build" / "ui"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with kept_demo(tmp_path_factory.mktemp("demo")) as running:
        running.produce(BROKEN, UNKNOWN_ROLE)
        yield running


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as running:
        yield running


@pytest.fixture
def seen(demo: Demo) -> Seen:
    return Seen(demo.base)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_a_screen_shows_the_data_and_nothing_is_wrong_with_it(
    screen: Screen, scheme: Scheme, demo: Demo, chromium: Browser, seen: Seen
) -> None:
    """No error on the console, no request to another host, nothing serious that axe finds, no scrolling sideways."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with opened(chromium, seen, scheme) as page:
        if screen.name == "live-flow":
            page.goto(demo.base + screen.path)
            demo.talk(100 * (scheme == "dark"))
        go(page, demo.base, screen)
        if screen.name == "live-flow":
            page.locator(".chip.memory").first.wait_for()
            assert page.get_by_text("violin lesson").count() >= 3
        page.screenshot(path=PICTURES / f"{screen.name}-{scheme}.png")
        assert findings(page) == []
        page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
        page.locator("details.menu summary").click()
        page.screenshot(path=PICTURES / f"{screen.name}-{scheme}-phone.png")
        assert findings(page) == []
    assert (seen.complaints, seen.elsewhere) == ([], [])


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_the_keyboard_reaches_the_content_first_and_sees_where_it_is(
    screen: Screen, demo: Demo, chromium: Browser, seen: Seen
) -> None:
    with opened(chromium, seen) as page:
        go(page, demo.base, screen)
        page.evaluate("document.activeElement.blur(); window.getSelection().removeAllRanges()")
        page.keyboard.press("Tab")
        skip = page.locator("a.skip")
        assert skip.evaluate("one => one === document.activeElement && one.getBoundingClientRect().left >= 0")
        for _ in range(9):
            page.keyboard.press("Tab")
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", page.evaluate("document.activeElement.outerHTML")
        skip.focus()
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"


def test_it_polls_while_it_is_seen_and_not_stopped(demo: Demo, chromium: Browser, seen: Seen) -> None:
    """Nothing is asked while the page is hidden, or the reader has stopped it; nothing jumps when something comes."""

    def polls() -> int:
        return sum("/ui/overview/" in url for url in seen.asked)

    with opened(chromium, seen) as page:
        page.clock.install()
        page.goto(f"{demo.base}/ui/overview")
        page.locator("[data-chart] canvas").first.wait_for()
        places = (
            "[...document.querySelectorAll('main .tile, main section')].map(one => one.getBoundingClientRect().top)"
        )
        before = page.evaluate(places)
        with page.expect_response(re.compile("/ui/overview/now")):
            page.clock.run_for(3_000)
        page.clock.run_for(3_000)
        assert page.evaluate(places) == before
        pause = page.get_by_role("button", name="Pause")
        pause.click()
        asked = polls()
        assert asked >= 1
        page.clock.run_for(30_000)
        assert polls() == asked
        # Hide first: the page's clock also runs by itself, so a poll could fire before the page is hidden.
        page.evaluate("Object.defineProperty(document, 'visibilityState', {get: () => 'hidden'})")
        page.get_by_role("button", name="Resume").click()
        page.clock.run_for(30_000)
        assert polls() == asked
    assert seen.complaints == []


def test_the_theme_is_chosen_and_kept(demo: Demo, chromium: Browser, seen: Seen) -> None:
    with opened(chromium, seen, "light") as page:
        page.goto(f"{demo.base}/ui/sessions")
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.locator("button.theme:visible").click()
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert light != dark
        page.goto(f"{demo.base}/ui/memories")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
        assert page.locator("button.theme:visible").get_attribute("aria-pressed") == "true"


def test_a_chart_is_a_table_as_well(demo: Demo, chromium: Browser, seen: Seen) -> None:
    with opened(chromium, seen) as page:
        page.goto(f"{demo.base}/ui/lifecycle")
        page.get_by_text("The figures as a table").nth(1).click()
        rows = page.locator("figure").nth(1).locator("details tbody tr")
        expect(rows).to_have_count(10, timeout=PATIENCE * 1000)  # it is filled when it has opened
        assert sum(int(text) for text in rows.locator("td").all_inner_texts()) > 50


def test_a_memory_is_corrected_and_forgotten_by_its_owner(demo: Demo, chromium: Browser, seen: Seen) -> None:
    """With a question before what cannot be taken back."""
    with opened(chromium, seen) as page:
        page.goto(f"{demo.base}/ui/me?user_id=maya")
        first = page.locator("article.entry").first
        before = first.locator(".text").inner_text()
        first.get_by_text("Correct").click()
        first.locator("textarea").fill("Maya moved to Lisbon.")
        first.get_by_role("button", name="Save").click()
        page.get_by_text("The memory is corrected.").wait_for()
        mine = page.locator("article.entry", has_text="Maya moved to Lisbon.")
        assert mine.count() == 1
        assert page.get_by_text(before, exact=True).count() == 0
        page.once("dialog", lambda dialog: dialog.dismiss())
        mine.get_by_role("button", name="Forget").click()
        page.once("dialog", lambda dialog: dialog.accept())
        mine.get_by_role("button", name="Forget").click()
        page.get_by_text("The memory is forgotten.").wait_for()
        assert page.get_by_text("Maya moved to Lisbon.").count() == 0
    assert (seen.complaints, seen.elsewhere) == ([], [])


def test_memories_are_found_while_one_types(demo: Demo, chromium: Browser, seen: Seen) -> None:
    with opened(chromium, seen) as page:
        page.goto(f"{demo.base}/ui/memories?user_id=lin")
        page.get_by_label("Text").fill("百合")
        page.wait_for_url(re.compile("text="))
        rows = page.locator("#found tbody tr")
        assert "百合" in rows.first.inner_text()
        assert rows.count() < 5
    assert (seen.complaints, seen.elsewhere) == ([], [])


def test_a_dead_letter_is_mended_with_one_click(demo: Demo, chromium: Browser, seen: Seen) -> None:
    with opened(chromium, seen) as page:
        page.goto(f"{demo.base}/ui/dead-letters")
        letter = page.locator("article", has_text="the value is not JSON").first
        letter.get_by_text("Show the record and repair it").click()
        letter.locator("textarea").fill(BROKEN.decode() + "}")
        letter.get_by_role("button", name="Produce again").click()
        page.get_by_text("Produced again at").first.wait_for()
        page.goto(f"{demo.base}/ui/session?user_id=maya&session_id=maya-1031")
        assert page.get_by_text("Biscuit is a corgi").count() >= 1
    assert (seen.complaints, seen.elsewhere) == ([], [])
