"""The drills of the built book: every chapter's own, links that lead somewhere, for everybody."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import course as settings
import pytest
from bs4 import BeautifulSoup
from chromium import ABSENT, BROWSER
from drill_links import PRACTICE, SHOWN, drills_by_chapter, drills_by_entry
from drill_pages import STILL
from playwright.sync_api import expect

from attncourse.practice.excerpt import excerpt_of
from helpers.page_visitor import AXE, PHONE, WCAG, WIDE, axe, visitor
from helpers.project import ROOT

COURSE = settings.load(ROOT)
DRILLS = drills_by_chapter(COURSE)
CHAPTERS = [chapter for chapter in COURSE.chapters if chapter.stem in DRILLS]
MAX_SCRIPT_BYTES = 250_000  # bytes of a chapter's drills

pytestmark = pytest.mark.slow
needs_browser = pytest.mark.skipif(BROWSER is None, reason=ABSENT)
each_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)


@cache
def page(built: Path, name: str) -> BeautifulSoup:
    return BeautifulSoup((built / "book" / name).read_text(encoding="utf-8"), "html.parser")


@cache
def ids_on(built: Path, name: str) -> set[str]:
    text = (built / "book" / name).read_text(encoding="utf-8")
    return set(re.findall(r'\bid="([^"]+)"', text))


def data_of(built: Path, stem: str) -> list[dict]:
    """Return the drills in a chapter's script."""
    text = (built / "_static" / "drills" / f"{stem}.js").read_text(encoding="utf-8")
    call = re.fullmatch(r'attncourseDrills\("(\w+)",(.*)\);\n', text, re.DOTALL)
    assert call[1] == stem
    return json.loads(call[2])


@each_chapter
def test_three_drills_stand_before_the_exercises(built, chapter):
    titles = page(built, f"{chapter.folder}.html").select("article h2")
    words = [re.sub(r"^[\d.]+\s*|#$", "", title.get_text()) for title in titles]
    assert words[words.index("Find the mistake") + 1] == "Exercises"
    section = page(built, f"{chapter.folder}.html").select_one("#find-the-mistake")
    assert len(section.select(".ap-still-drill")) == min(STILL, len(DRILLS[chapter.stem]))
    assert section.select_one(".attncourse-drill")["data-practice"] == "practice.html"


@each_chapter
def test_all_drills_are_in_the_script_and_their_links_resolve(built, chapter):
    data = data_of(built, chapter.stem)
    assert [drill_data["id"] for drill_data in data] == [drill.id for drill in DRILLS[chapter.stem]]
    assert (built / "_static" / "drills" / f"{chapter.stem}.js").stat().st_size < MAX_SCRIPT_BYTES
    for drill_data in data:
        links = re.findall(r'href="([^"]+)"', drill_data["links"])
        assert len(links) == 2, drill_data["id"]
        for link in links:
            name, _, place = link.partition("#")
            assert unquote(place) in ids_on(built, name), (drill_data["id"], link)


def test_each_entry_of_the_field_guide_leads_to_its_drills(built):
    text = (built / "book" / "field_guide.html").read_text(encoding="utf-8")
    entries = dict(
        re.findall(r'<details class="attn-bug" id="([^"]+)">(.*?)</details>', text, re.S)
    )
    for entry, drills in drills_by_entry(COURSE).items():
        links = re.findall(r'href="practice\.html#([^"]+)"', entries[entry])
        assert links == [drill.id for drill in drills[:SHOWN]], entry
    known = {drill.id for drills in DRILLS.values() for drill in drills}
    assert set(re.findall(r'href="practice\.html#([^"]+)"', text)) <= known


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, WIDE], ids=["phone", "wide"])
def test_a_drill_is_accessible_at_each_step(browser, built, size, scheme):
    reader = visitor(browser, viewport=size, color_scheme=scheme)
    tab = reader.new_page()
    for name in (f"{CHAPTERS[-1].folder}.html#find-the-mistake", f"{Path(PRACTICE).name}.html"):
        tab.goto(f"{(built / 'book').as_uri()}/{name}", wait_until="load")
        box = tab.locator(".attncourse-drill")
        box.scroll_into_view_if_needed()
        tab.locator("button.ap-line").first.wait_for()
        for choice in box.locator(".ap-choose summary").all():
            choice.click()
        tab.evaluate(axe())
        tab.add_style_tag(content="* { transition: none !important; }")
        for step in ("button.ap-line", ".ap-option", ".ap-next"):
            axe_call = AXE.replace("axe.run(document", "axe.run('.attncourse-drill'")
            assert tab.evaluate(axe_call, WCAG) == [], (name, step)
            assert tab.evaluate("document.documentElement.scrollWidth") <= size["width"]
            box.locator(step).first.click()
    reader.close()


@needs_browser
@each_chapter
def test_on_a_phone_the_names_are_in_sight_after_a_line(browser, built, chapter, record_property):
    reader = visitor(browser, viewport=PHONE, has_touch=True)
    tab = reader.new_page()
    fully_shown, stayed = 0, 0
    drills = DRILLS[chapter.stem][:: max(1, len(DRILLS[chapter.stem]) // 6)]
    tab.goto(f"{(built / 'book').as_uri()}/practice.html#{drills[0].id}", wait_until="load")
    for drill in drills:
        tab.evaluate("id => { location.hash = id; }", drill.id)  # to load anew takes a second
        tab.locator(f"[data-drill='{drill.id}']").evaluate("box => box.scrollIntoView()")
        before = tab.evaluate("scrollY")
        line = (
            tab.locator(".ap-stage .ap-code").first.locator(".ap-line").nth(excerpt_of(drill).line)
        )
        fully_shown += line.bounding_box()["y"] + line.bounding_box()["height"] <= PHONE["height"]
        line.tap()
        for option in tab.locator(".ap-option").all():
            expect(option).to_be_in_viewport(ratio=1)
        stayed += tab.evaluate("scrollY") == before
    record_property(
        "summary",
        f"{chapter.stem}: of {len(drills)} drills on a phone {fully_shown} show their line "
        f"at once, and {stayed} the names without moving the page",
    )
    reader.close()


@needs_browser
def test_a_page_opened_from_a_folder_soon_shows_a_drill(browser, built, record_property):
    reader = visitor(browser)
    tab = reader.new_page()
    addresses: list[str] = []
    tab.on("request", lambda request: addresses.append(request.url))
    tab.goto(f"{(built / 'book').as_uri()}/practice.html", wait_until="load")
    tab.locator("button.ap-line").first.wait_for()
    took = tab.evaluate("performance.now()")
    assert sum("/drills/" in address for address in addresses) == 1  # of one chapter
    sizes = [file.stat().st_size / 1e3 for file in (built / "_static" / "drills").iterdir()]
    record_property(
        "summary",
        f"Practice has its first drill after {took:.0f} ms; the {sum(map(len, DRILLS.values()))} "
        f"drills are {sum(sizes):.0f} kB, the largest chapter's {max(sizes):.0f}",
    )
    reader.close()
