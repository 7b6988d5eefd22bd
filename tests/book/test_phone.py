"""What a phone, 390 pixels wide, shows of every chapter: nothing cut, little printed."""

from __future__ import annotations

from collections.abc import Iterator

import course as settings
import pytest
from chromium import ABSENT, BROWSER, launched
from playwright.sync_api import Page

from helpers.project import ROOT

CHAPTERS = settings.load(ROOT).chapters
PHONE = {"width": 390, "height": 844}
# Blocks that print and show without unfolding; blocks with lines that a phone has to break, whose
# columns then do not stand below each other; the height of the first screen's figure, in pixels.
PRINTED, BROKEN, HIGH = 5, 1, 560
MEASURE = r"""() => {
  const article = document.querySelector("article");
  const seen = names => [...article.querySelectorAll(names)].filter(box => box.checkVisibility());
  const boxes = seen("pre"), wide = [...boxes, ...seen("mjx-container[display], .am-wide")];
  const printed = boxes.filter(
    box => box.closest(".cell_output") && !box.closest(".highlight-python"));
  const breaks = row => row.getBoundingClientRect().height
    > 1.6 * parseFloat(getComputedStyle(row).lineHeight);
  const figures = ".attncourse-moving, .attncourse-view, .attncourse-slider";
  const first = [...article.querySelectorAll(`${figures}, .attncourse-diagram, img, .attn-plot`)]
    .find(one => one.checkVisibility() && one.getBoundingClientRect().height > 80);
  return {
    cut: wide.filter(box => box.scrollWidth > box.clientWidth + 1).map(box => box.textContent),
    printed: printed.map(box => box.innerText),
    broken: printed.filter(box => [...box.querySelectorAll(".attn-row")].some(breaks))
      .map(box => box.innerText),
    moves: Boolean(first?.matches(figures)),
    high: first ? Math.round(first.getBoundingClientRect().height) : 0,
  };
}"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason=ABSENT),
]


@pytest.fixture(scope="module")
def tab() -> Iterator[Page]:
    with launched() as browser:
        yield browser.new_page(viewport=PHONE, color_scheme="light")


def faults(measures: dict) -> dict[str, list[str]]:
    """Return messages on what is wrong with a page on a phone, by kind."""
    many, broken = len(measures["printed"]), measures["broken"]
    first = []
    if not measures["moves"]:
        first.append("the first figure does not move")
    elif measures["high"] > HIGH:
        first.append(f"the first figure is {measures['high']} pixels high, at most {HIGH}")
    return {
        "cut": [f"cut: {text[:60]!r}" for text in measures["cut"]],
        "printed": ([f"{many} printed blocks, at most {PRINTED}"] if many > PRINTED else []),
        "broken": [f"lines are broken: {text[:60]!r}" for text in broken] * (len(broken) > BROKEN),
        "first": first,
    }


@pytest.fixture(scope="module")
def measured(tab, built) -> dict[str, dict]:
    """Return the measures of every chapter, each page opened once."""
    measures_by_chapter = {}
    for chapter in CHAPTERS:
        tab.goto((built / f"{chapter.page}.html").as_uri(), wait_until="load")
        measures_by_chapter[chapter.stem] = tab.evaluate(MEASURE)
    return measures_by_chapter


@pytest.mark.parametrize("stem", [chapter.stem for chapter in CHAPTERS])
@pytest.mark.parametrize("kind", ["cut", "printed", "broken", "first"])
def test_a_chapter_fits_a_phone(kind, stem, measured):
    assert faults(measured[stem])[kind] == []


def test_the_sums_of_faults_are_reported(measured, record_property):
    sums = {
        name: sum(len(faults_of_page[name]) for faults_of_page in measured.values())
        for name in ("cut", "broken", "printed")
    }
    record_property(
        "summary",
        f"at 390 pixels {sums['cut']} boxes and formulas are cut, {sums['broken']} printed blocks "
        f"have broken lines, {sums['printed']} printed blocks show",
    )
    assert sums["cut"] == 0


ROW = '<span class="attn-row">{}</span>'
BOX = f"<div class='cell_output'><div class='highlight'><pre>{ROW}</pre></div></div>"
FIGURE = '<div class="attncourse-moving" style="height: {}px"></div>'
STYLE = (
    "<style>pre { overflow-x: auto; width: 100px; line-height: 20px }"
    ".attn-row { display: block } mjx-container { display: block; overflow: auto; width: 90px }"
    "i { display: block; width: 99px }</style>"
)
TWO_LINES = BOX.format("a<br>b")


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        (FIGURE.format(500) + 5 * BOX.format("x") + TWO_LINES.replace("cell_output", ""), None),
        (FIGURE.format(500) + 6 * BOX.format("x"), "6 printed blocks"),
        (FIGURE.format(600), "600 pixels high"),
        ('<div class="attncourse-diagram" style="height: 90px"></div>', "does not move"),
        (FIGURE.format(500) + BOX.format("x" * 99), "cut"),
        (FIGURE.format(500) + '<mjx-container display="true"><i>x</i></mjx-container>', "cut: 'x'"),
        (FIGURE.format(500) + 2 * TWO_LINES, "lines are broken"),
    ],
)
def test_each_fault_on_a_phone_is_reported(tab, page, fault):
    tab.set_content(f"<!doctype html>{STYLE}<article>{page}</article>")
    messages = [message for every in faults(tab.evaluate(MEASURE)).values() for message in every]
    if fault is None:
        assert messages == []
    else:
        assert fault in "; ".join(messages)
