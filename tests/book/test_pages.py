"""The shape of every chapter as a reader sees it, unfolding nothing: what CONTRIBUTING.md asks."""

from __future__ import annotations

import re
from collections.abc import Iterator

import course as settings
import pytest
from chromium import ABSENT, BROWSER, launched
from playwright.sync_api import Page

from helpers.project import ROOT

# Chapters that have not been brought to this shape yet. One that has it must leave.
NOT_YET: set[str] = set()
CHAPTERS = settings.load(ROOT).chapters
WORDS, WORDS_BEFORE_A_FIGURE, COLUMNS = 3_500, 350, 72
WIDTH, SCREEN = 1280, 900
# What stands after the text, and what is folded, has no sentence to take away.
NO_TAKEAWAY = ("Check yourself", "Summary", "Find the mistake", "Exercises")
NO_TAKEAWAY += ("Further reading", "Deeper")

# A word is visible if it shows without unfolding anything; code, formulas and drawings are not
# counted. A figure is what is drawn and higher than a line or two.
MEASURE = r"""() => {
  const article = document.querySelector("article");
  const drawn = node => node.matches("img, svg, canvas") && node.checkVisibility()
    && !node.parentElement.closest("svg, mjx-container, nav") && !node.matches("mjx-container *")
    && node.getBoundingClientRect().height > 80;
  let words = 0, before = null;
  const walk = document.createTreeWalker(article, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode;
    if (node.nodeType === Node.ELEMENT_NODE) {
      if (before === null && drawn(node)) before = words;
      continue;
    }
    const around = node.parentElement;
    if (around.closest("pre, script, style, svg, mjx-container, nav, noscript")) continue;
    if (around.closest("#find-the-mistake")) continue; // drills are exercises, no text to read
    if (!around.checkVisibility() || around.getBoundingClientRect().height === 0) continue;
    words += node.textContent.split(/\s+/).filter(Boolean).length;
  }
  const boxes = [...article.querySelectorAll("pre")].filter(box => box.checkVisibility());
  const code = boxes.filter(box => !box.closest(".highlight-myst-ansi, .output.stream"));
  const diagram = [...article.querySelectorAll(".attncourse-diagram")].find(
    one => one.checkVisibility());
  const top = diagram ? diagram.getBoundingClientRect().top + scrollY : null;
  const last = section => {
    const parts = [...section.children].filter(part => part.checkVisibility()
      && part.getBoundingClientRect().height > 0);
    return parts.at(-1).matches("section") ? last(parts.at(-1)) : parts.at(-1);
  };
  return {
    words,
    before,
    cut: boxes.filter(box => box.scrollWidth > box.clientWidth + 1).map(box => box.innerText),
    code: code.map(box => box.innerText),
    diagram: top,
    codeFirst: diagram ? boxes.some(box =>
      box.compareDocumentPosition(diagram) & Node.DOCUMENT_POSITION_FOLLOWING) : null,
    sections: [...article.querySelectorAll("section > section:has(> h2)")].map(section => {
      const end = last(section), bold = end.matches("p") && end.querySelector("strong");
      const whole = bold && bold.innerText.trim() === end.innerText.trim();
      return [section.querySelector("h2").innerText, whole ? bold.innerText.trim() : ""];
    }),
  };
}"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason=ABSENT),
]


@pytest.fixture(scope="module")
def tab() -> Iterator[Page]:
    with launched() as browser:
        yield browser.new_page(viewport={"width": WIDTH, "height": SCREEN}, color_scheme="light")


def heading(text: str) -> str:
    """Return a section's title without its number and link, as in ``5.2. Who fits whom#``."""
    return re.sub(r"^[\d.]+\s+", "", text).rstrip("#").strip()


def faults(measures: dict) -> list[str]:
    """Return a message for each part of the required shape that a page lacks."""
    messages = []
    if measures["words"] > WORDS:
        messages.append(f"{measures['words']} visible words, at most {WORDS}")
    if measures["before"] is None or measures["before"] > WORDS_BEFORE_A_FIGURE:
        messages.append(f"{measures['before']} words before the first figure, at most 350")
    messages += [f"a listing is cut: {text[:60]!r}" for text in measures["cut"]]
    long = [line for text in measures["code"] for line in text.splitlines() if len(line) > COLUMNS]
    messages += [f"{len(line)} columns, at most {COLUMNS}: {line[:40]!r}" for line in long]
    if measures["diagram"] is None or measures["diagram"] > 2 * SCREEN:
        messages.append(
            f"no diagram of the mechanism in the first two screens: {measures['diagram']}"
        )
    elif measures["codeFirst"]:
        messages.append("code stands before the diagram of the mechanism")
    for title, takeaway in measures["sections"]:
        one_sentence = re.search(r"[.?!]$", takeaway) and not re.search(r"[.?!] [A-Z]", takeaway)
        if heading(title) not in NO_TAKEAWAY and not one_sentence:
            messages.append(f"{heading(title)!r} does not end with one bold sentence: {takeaway!r}")
    return messages


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
def test_a_chapters_page_has_the_required_parts(chapter, tab, built, record_property):
    tab.goto((built / f"{chapter.page}.html").as_uri(), wait_until="load")
    measures = tab.evaluate(MEASURE)
    messages = faults(measures)
    record_property(
        "summary",
        f"{chapter.page}: {measures['words']} visible words, {measures['before']} before the first "
        f"figure, {len(messages)} faults",
    )
    if chapter.stem in NOT_YET:
        assert messages, f"{chapter.page} has its shape: take {chapter.stem!r} out of NOT_YET"
    else:
        assert messages == []


FIGURE = '<div class="attncourse-diagram"><svg height="200"></svg></div>'
SHAPED = (
    f"<article><section><h1>5. A page</h1><p>A question.</p>{FIGURE}"
    "<section><h2>5.1. One#</h2><div class='highlight'><pre>x = 1</pre></div>"
    "<p><strong>Take this away.</strong></p></section>"
    "<section><h2>5.2. Summary#</h2><p>Many words.</p></section></section></article>"
)


@pytest.mark.parametrize(
    ("spoiled", "fault"),
    [
        (SHAPED, None),
        (SHAPED.replace("Many", "many " * 3_600), "36.. visible words, at most 3500"),
        (SHAPED.replace("A question.", "Why? " * 400), "4.. words before the first figure"),
        (SHAPED.replace(FIGURE, ""), "None words before the first figure"),
        (SHAPED.replace("x = 1", "x = 1" + "  # 1" * 14), "75 columns, at most 72: 'x = 1"),
        (SHAPED.replace("x = 1", "x" * 400), "a listing is cut: 'xxx"),
        (SHAPED.replace("attncourse-diagram", "plot"), "no diagram .* two screens: None"),
        (SHAPED.replace("</h1>", "</h1><p style='height: 2000px'>"), "no diagram .* screens: 2"),
        (SHAPED.replace(FIGURE, f"<pre>1</pre>{FIGURE}"), "code stands before the diagram"),
        (SHAPED.replace("strong>", "em>"), "'One' does not end with one bold sentence: ''"),
        (SHAPED.replace("Take this", "Take this</strong> or <strong>that"), "'One' does not end"),
        (SHAPED.replace("away.", "away. And this."), "'One' does not end with one bold sentence"),
        (SHAPED.replace("away.", "away"), "'One' does not end with one bold sentence"),
    ],
)
def test_each_fault_of_a_page_is_reported(tab, spoiled, fault):
    style = "pre { overflow-x: auto; max-width: 700px; display: block }"
    tab.set_content(f"<!doctype html><style>{style}</style>{spoiled}")
    messages = faults(tab.evaluate(MEASURE))
    if fault is None:
        assert messages == []
    else:
        assert any(re.search(fault, message) for message in messages), messages


def test_folded_text_and_folded_code_do_not_count(tab):
    inside = f"<pre>{'x' * 99}</pre><p>{'many ' * 9_000}</p>"
    folded = f"<details><summary>Setup</summary>{inside}</details>"
    tab.set_content(f"<!doctype html>{SHAPED.replace('</h1>', '</h1>' + folded)}")
    assert faults(tab.evaluate(MEASURE)) == []


def test_pages_not_yet_in_shape_are_chapters():
    assert {chapter.stem for chapter in CHAPTERS} >= NOT_YET
