"""The decks: what a page claims, draws and asks, on slides that fit a screen and work offline."""

from functools import cache
from pathlib import Path

import pytest
import slides
from bs4 import BeautifulSoup
from chromium import ABSENT, BROWSER, launched
from course import load

from helpers.project import ROOT

COURSE = load(ROOT)


@pytest.fixture(scope="module")
def made(built) -> dict[str, Path]:
    """Return the slide decks by chapter."""
    assert built == ROOT / "_build" / "html"
    return {path.stem: path for path in slides.make(COURSE)}


@cache
def read(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def words(text: str) -> str:
    return " ".join(text.replace("#", "").split())


@pytest.mark.slow
@pytest.mark.parametrize("chapter", COURSE.chapters, ids=lambda chapter: chapter.stem)
def test_a_deck_has_what_its_page_has(made, built, chapter):
    page, deck = read(built / f"{chapter.page}.html"), read(made[chapter.folder])
    article = page.select_one("article.bd-article > section")
    shown = deck.select(".attn-slide")
    assert words(shown[0].h1.get_text()) == words(article.h1.get_text())
    assert shown[0].get_text().rstrip().endswith("?")
    assert 10 <= len(shown) <= 30
    assert all(slide.select_one("h1, h2").get_text().strip() for slide in shown)
    headings = [words(slide.select_one("h1, h2").get_text()) for slide in shown]
    deck_words = words(deck.get_text())
    for section in article.select(":scope > section"):
        takeaways = [p for p in section.select(":scope > p") if slides.is_takeaway(p)]
        if takeaways:
            assert words(section.h2.get_text()) in headings
        assert all(words(p.get_text()) in deck_words for p in takeaways)
    drawn = [f["id"] for f in article.select("figure[id]") if f.find_parent("details") is None]
    assert [f["id"] for f in deck.select("figure[id]")] == drawn
    assert not deck.select(".cell_input, a.headerlink, button.copybtn")
    ids = [element["id"] for element in deck.select("[id]")]
    assert len(ids) == len(set(ids))


@pytest.mark.slow
@pytest.mark.parametrize("chapter", COURSE.chapters, ids=lambda chapter: chapter.stem)
def test_files_and_links_of_a_deck_exist(made, chapter):
    deck = made[chapter.folder]
    for element in read(deck).select("[href], [src]"):
        address = element.get("href") or element["src"]
        place = address.partition("#")[0].partition("?")[0]
        if place and not address.startswith(("http", "data:", "mailto:")):
            assert (deck.parent / place).is_file(), address


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason=ABSENT)
def test_slides_fit_a_screen_and_move_by_key(made):
    with launched() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        wrong, elsewhere = [], []
        page.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda r: elsewhere.append(r.url) if r.url.startswith("http") else None)
        page.goto(made["05_kqv"].as_uri())
        page.wait_for_function("document.querySelector('.attn-where').textContent")
        page.wait_for_function(
            "[...document.querySelectorAll('.attn-slide')].every(s => s.scrollHeight <= 721)"
        )
        count = page.locator(".attn-slide").count()
        assert page.locator("mjx-merror").count() == 0
        for key, number in (("ArrowRight", 2), ("PageDown", 3), ("ArrowLeft", 2), ("End", count)):
            page.keyboard.press(key)
            assert page.locator(".attn-where").inner_text() == f"{number} / {count}"
            assert page.evaluate("location.hash") == f"#{number}"
            top = page.locator(".attn-slide").nth(number - 1).bounding_box()["y"]
            assert abs(top) < 2
        printed = page.pdf(prefer_css_page_size=True)
        assert printed.count(b"/Type /Page\n") == count
        assert (wrong, elsewhere) == ([], [])


def test_a_page_that_is_not_built_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["slides.py", "--root", str(tmp_path)])
    for name in ("_toc.yml", "_config.yml"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    assert slides.main() == 1
    assert capsys.readouterr().err.endswith("is missing: build the book first (make book)\n")


PAGE = """<html><head></head><body><article class="bd-article"><section><h1>T</h1>
<p>So <strong>why?</strong> <button class="attn-do" data-do="dial&amp;s=3">turn q</button></p>
<div class="cell_output"><div class="attncourse-moving" data-figure="dial"></div></div>
<section><h2>1. A part</h2><p>See <button class="attn-do" data-do="a-view&amp;map=1">both</button>
and <a href="real_model.html#set=real_model&amp;switch0=1">a model</a>.</p>
<div class="cell_output"><div class="attncourse-view" aria-label="A view!"></div></div></section>
</section></article></body></html>"""


def test_verbs_of_the_text_are_links_on_the_slide():
    deck = BeautifulSoup(slides.deck(PAGE, COURSE.chapters[4]), "html.parser")
    links = [
        [(a["href"], a.get_text()) for a in slide.select(".attn-settings a")]
        for slide in deck.select(".attn-slide")
    ]
    assert links == [
        [],
        [("../book/05_kqv.html#set=dial&s=3", "turn q")],
        [
            ("../book/05_kqv.html#set=a-view&map=1", "both"),
            ("../book/real_model.html#set=real_model&switch0=1", "a model"),
        ],
    ]
