"""A small page with drills that were written by hand, as a reader has it."""

from __future__ import annotations

import json
from pathlib import Path

import drill_links
import drill_pages
from course import Course
from playwright.sync_api import Browser, Locator, Page

from attncourse.practice.drills import Drill, drill_from
from helpers.project import ROOT

FIXTURE = ROOT / "tests" / "fixtures" / "drills" / "kqv.json"
SCRIPTS = ("attncourse.js", "practice.js", "practice_page.js")
PAGE = """<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8"><title>t</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body {{ margin: 1rem }} article > p {{ min-height: {above}px }}</style>
<link rel="stylesheet" href="../_static/attncourse.css">
<link rel="stylesheet" href="../_static/practice.css">
<body><main><article class="bd-article"><p>Above</p>{box}<section id="below"></section></article>
</main>{scripts}</body></html>"""


def drills_by_hand(stem: str = "kqv") -> tuple[Drill, ...]:
    """Return the drills of the fixture, for a chapter of any name."""
    fixture = json.loads(FIXTURE.read_text(encoding="utf-8").replace('"kqv-', f'"{stem}-'))
    return tuple(drill_from(entry, fixture["setups"]) for entry in fixture["drills"])


def write_pages(folder: Path, course: Course, stems: tuple[str, ...], above: int = 0) -> None:
    """Write a chapter's page and the page of all chapters, with what they load."""
    for name in ("book", "_static/drills"):
        (folder / name).mkdir(parents=True)
    for path in (ROOT / "book" / "assets").glob("*.[jc]s*"):
        (folder / "_static" / path.name).write_bytes(path.read_bytes())
    scripts = "".join(f'<script defer src="../_static/{name}"></script>' for name in SCRIPTS)
    boxes = {
        "chapter": drill_pages.chapter_html(course, course.chapters[4]),
        "practice": drill_pages.practice_html(course, {s: f"Title of {s}" for s in stems}),
    }
    for name, box in boxes.items():
        text = PAGE.format(box=box, scripts=scripts, above=above)
        (folder / "book" / f"{name}.html").write_text(text, encoding="utf-8")
    for stem, drills in drill_links.drills_by_chapter(course).items():
        text = drill_pages.script_of(course, stem, drills)
        (folder / "_static" / "drills" / f"{stem}.js").write_text(text, encoding="utf-8")


class DrillReader:
    """A browser's tab with one of the pages, and what went wrong on it."""

    def __init__(self, browser: Browser, folder: Path, page: str = "practice.html", **options):
        options = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"} | options
        self.folder = folder
        self.context = browser.new_context(**options)
        self.wrong: list[str] = []
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.wrong.append("a dialog"), dialog.dismiss()))
        self.open(page)

    def open(self, page: str) -> None:
        self.page.goto("about:blank")
        self.page.goto(f"{(self.folder / 'book').as_uri()}/{page}", wait_until="load")

    @property
    def box(self) -> Locator:
        return self.page.locator(".attncourse-drill")

    @property
    def drill(self) -> str:
        """The id of the drill that is shown."""
        self.page.wait_for_selector(".attncourse-drill[data-drill]")
        return self.box.get_attribute("data-drill")

    @property
    def record(self) -> dict:
        return json.loads(self.page.evaluate("() => attncourseKept.text()"))

    def line(self, number: int) -> Locator:
        """A line that can be chosen, counted from 0."""
        return self.box.locator(".ap-stage .ap-code").first.locator(".ap-line").nth(number)

    def option(self, name: str) -> Locator:
        return self.box.locator(".ap-option").filter(has_text=name)

    def solve(self, drills: tuple[Drill, ...], line_right: bool = True, name_right: bool = True):
        """Answer the drill that is shown."""
        drill = next(
            drill_candidate for drill_candidate in drills if drill_candidate.id == self.drill
        )
        code = enumerate(line.strip() for line in drill.code)
        wrong = next(i for i, line in code if i != drill.line and line and line[0] != "#")
        self.line(drill.line if line_right else wrong).click()
        name = drill.name if name_right else drill.wrong_names[0]
        self.box.get_by_role("button", name=name.replace("`", ""), exact=True).click()
        return drill

    def another(self) -> str:
        self.box.get_by_role("button", name="Another one").click()
        return self.drill

    def close(self) -> None:
        assert self.wrong == []
        self.context.close()
