"""The built book as a reader has it: in Chromium, with no other host to be reached."""

from __future__ import annotations

import json
import re
import struct
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator
from functools import cache, partial
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit
from xml.etree import ElementTree

import course as settings
import formulas
import pdf
import pytest
import strip
from bs4 import BeautifulSoup
from chromium import ABSENT, BROWSER, launched
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pypdf import PdfReader

from attncourse import __version__
from attncourse.checks import exercises
from attncourse.grading.serve import Quiet, Server
from helpers.page_visitor import AXE, PHONE, WCAG, WIDE, axe, visitor
from helpers.plot_colours import LETTERS
from helpers.project import ROOT, run_tool

PAGES = [f"{page}.html" for page in settings.load(ROOT).pages]
CHAPTERS = [f"{chapter.page}.html" for chapter in settings.load(ROOT).chapters]
THEME_RULES = ["color-contrast", "target-size", "scrollable-region-focusable"]

# Axe goes through all that is on a page some forty times. So what says nothing goes before: lines
# of a drawing that bear no text and no role, and of the tokens of code in one kind of box those
# that look like one before. Of the field guide's entries of one template one in eight stays.
THINNED_SCRIPT = """() => {
    const all = what => [...document.querySelectorAll(what)];
    const says = "text, title, desc, a, foreignObject, foreignObject *, [role], [tabindex], "
        + "[aria-label], [aria-labelledby], [aria-describedby], [aria-hidden]";
    const silent = all("svg *").filter(line => !line.matches(says) && !line.querySelector(says));
    const seen = new Set();
    const again = all("pre span:not([id])").filter(token => {
        const box = token.closest("div.highlight")?.parentElement.parentElement.className;
        const kind = [token.className, box, getComputedStyle(token).color].join();
        return !token.firstElementChild && (seen.has(kind) || !seen.add(kind));
    });
    const alike = all("details.attn-bug").filter((entry, number) => number % 8);
    for (const one of [...silent, ...alike]) one.remove();
    for (const token of again) token.replaceWith(token.textContent);
    document.normalize();
}"""

expect.set_options(timeout=60_000)  # a busy machine takes longer than the usual 5 s

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason=ABSENT),
]


@pytest.fixture(scope="module")
def html(built) -> Path:
    """Return the folder of the built book."""
    return built


@pytest.fixture(scope="module")
def soup(html) -> Callable[[str], BeautifulSoup]:
    """A page's markup by its name, each read once, without its tokens of code."""
    token = re.compile(r'<span class="\w{1,2}">([^<]*)</span>')

    @cache
    def of(name: str) -> BeautifulSoup:
        text = (html / name).read_text(encoding="utf-8")
        return BeautifulSoup(token.sub(r"\1", text), "html.parser")

    return of


@pytest.fixture(scope="module")
def address(html) -> Iterator[str]:
    """Where the book is served, as `attncourse serve` does it."""
    server = Server(("127.0.0.1", 0), partial(Quiet, directory=str(html)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1") as made:
        yield made


class PageReader:
    """A page as somebody reads it, and what went wrong meanwhile."""

    def __init__(self, visitor: BrowserContext, address: str):
        self.address = address
        self.page: Page = visitor.new_page()
        self.page.set_viewport_size(WIDE)
        self.elsewhere: list[str] = []
        self.errors: list[str] = []
        self.page.on("request", self.note_request)
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def note_request(self, request) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.elsewhere.append(request.url)

    def open(self, name: str) -> Page:
        self.page.goto(f"{self.address}/{name}", wait_until="load")
        return self.page


@pytest.fixture(scope="module")
def reused_reader(browser) -> Iterator[BrowserContext]:
    """Somebody who reads page after page: what all of them load is loaded and compiled once."""
    made = visitor(browser)
    yield made
    made.close()


@pytest.fixture
def reader(reused_reader, address) -> Iterator[PageReader]:
    made = PageReader(reused_reader, address)
    yield made
    made.page.close()


@pytest.fixture(scope="module")
def opened_page(request, reused_reader, address) -> Iterator[PageReader]:
    """The page named by the parameter, opened once for all tests that only look at it.

    They stand in this order, since each change of its size is as long as a test: as wide as it
    was opened, then `on_phone`; then comes what takes it apart.
    """
    made = PageReader(reused_reader, address)
    made.open(request.param)
    yield made
    made.page.close()


@pytest.fixture
def page(opened_page) -> Page:
    return opened_page.page


@pytest.fixture
def on_phone(opened_page) -> Page:
    opened_page.page.set_viewport_size(PHONE)
    return opened_page.page


# --- what the theme and its scripts leave to mend -------------------------------------------------


def test_every_answer_begins_with_right_or_wrong(reader):
    page = reader.open("book/05_kqv.html")
    question = page.locator(".attn-quiz").nth(1)
    answer = question.locator("details.attn-right")
    answer.locator("summary").click()
    word = answer.locator(".sd-summary-text").evaluate(
        "text => { const style = getComputedStyle(text, '::before');"
        " return [style.content, style.position]; }"
    )
    assert word == ['"Right: "', "static"]  # one laid out behind the header is seen by nobody
    score, box = page.locator(".attn-score").bounding_box(), question.bounding_box()
    assert 0 <= score["y"] - (box["y"] + box["height"]) < 60


def test_a_link_into_the_glossary_lands_there(browser, address):
    reader = visitor(browser, reduced_motion="no-preference")  # for them pages would glide
    page = reader.new_page()
    page.goto(f"{address}/book/glossary.html#term-value", wait_until="load")
    top = "() => document.getElementById('term-value').getBoundingClientRect().top"
    page.wait_for_function(f"() => {{ const top = ({top})(); return top >= 0 && top < 300; }}")
    assert (
        page.evaluate("() => getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    )
    reader.close()


@pytest.mark.parametrize("words", ["key page", "ink query"])
def test_the_words_of_a_search_leave_drawings_as_they_are(reused_reader, address, words):
    page = reused_reader.new_page()
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(f"{address}/book/05_kqv.html?highlight={words.replace(' ', '+')}", wait_until="load")
    page.wait_for_selector("article p .highlighted, article li .highlighted", state="attached")
    inside = "style span, svg .highlighted, [class^=attncourse-] .highlighted"
    assert page.locator(inside).count() == 0
    assert wrong == []
    page.close()


def test_contents_close_after_a_tap_on_a_phone(browser, address):
    reader = visitor(browser, viewport=PHONE, has_touch=True)
    page = reader.new_page()
    page.goto(f"{address}/book/17_efficient.html", wait_until="load")
    page.locator(".sidebar-toggle.secondary-toggle:visible").tap()
    page.locator(".bd-toc-nav a").nth(3).tap()
    expect(page.locator("#pst-secondary-sidebar-checkbox")).not_to_be_checked()
    page.locator(".sidebar-toggle.primary-toggle:visible").tap()
    here = page.locator(".bd-sidebar-primary .toctree-l1.current.active > a")
    expect(here).to_be_focused()
    page.wait_for_timeout(400)  # nor does the theme take the focus away later
    expect(here).to_be_focused()
    expect(here).to_be_in_viewport()
    reader.close()


def test_a_dark_page_is_printed_light(browser, address):
    reader = visitor(browser, color_scheme="dark")
    page = reader.new_page()
    page.goto(f"{address}/book/02_mixing.html", wait_until="load")
    page.evaluate("() => { document.documentElement.dataset.theme = 'dark'; }")
    theme = "() => document.documentElement.dataset.theme"
    page.evaluate(
        f"() => {{ addEventListener('beforeprint', () => {{ window.seen = ({theme})(); }}); }}"
    )
    page.pdf()
    assert page.evaluate("() => window.seen") == "light"
    assert page.evaluate(theme) == "dark"
    reader.close()


CROSSED_SCRIPT = """() => [...document.querySelectorAll("svg.attn-plot")].flatMap(plot => {
    const ground = plot.getBoundingClientRect(), boxes = what =>
        [...plot.querySelectorAll(what)].map(one => [one, one.getBoundingClientRect()]);
    const lines = boxes("path:not(defs *)").filter(([one, box]) =>
        /^M[-\\d.,\\s]+[VHL][-\\d.,\\s]+$/.test(one.getAttribute("d"))
        && (box.width < 0.6 && box.height > 0.4 * ground.height
            || box.height < 0.6 && box.width > 0.4 * ground.width));
    return boxes("g[transform*='scale(0.1']").filter(([, word]) => lines.some(([, line]) => {
        const x = line.left + line.width / 2, y = line.top + line.height / 2;
        return line.height > line.width
            ? x > word.left + 1 && x < word.right - 1 && line.top < word.bottom && line.bottom > word.top
            : y > word.top + 2 && y < word.bottom - 2 && line.left < word.right && line.right > word.left;
    })).map(() => plot.closest("figure")?.id);
})"""  # noqa: E501


@pytest.mark.parametrize("figure", ["fig-circuits-finders", "fig-circuits-professions"])
def test_intervals_of_one_kind_are_drawn_alike(reader, figure):
    page = reader.open("book/19_circuits.html")
    lines = page.locator(f"#{figure} svg path:not(defs *)")
    looks = lines.evaluate_all(
        """all => all.map(one => getComputedStyle(one)).filter(one => one.stroke !== "none")
            .map(one => [one.stroke, one.strokeDasharray])"""
    )
    blue = {dashes for stroke, dashes in looks if stroke == theme_violations(page, "query")}
    assert blue == {"none"}


def theme_violations(page: Page, role: str) -> str:
    return page.evaluate(
        """role => { const one = document.createElement("i"); document.body.append(one);
            one.style.color = `var(--attn-${role})`; return getComputedStyle(one).color; }""",
        role,
    )


def test_pixel_pictures_are_dimmed_in_dark_mode(browser, address):
    somebody = visitor(browser, color_scheme="dark")
    page = PageReader(somebody, address).open("book/11_positions.html")
    image = page.locator("#fig-positions-waves image").first
    assert "brightness" in image.evaluate("one => getComputedStyle(one).filter")
    somebody.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_forced_colours_figures_keep_their_own(browser, address, scheme):
    """What ink says is seen: the field of heads, bars, a painted digit, the samples of a legend."""
    somebody = visitor(browser, color_scheme=scheme, forced_colors="active")
    reader = PageReader(somebody, address)
    for name, selector in (
        ("19_circuits", ".he-maps"),
        ("13_gpt", ".lm-next i"),
        ("15_vision", ".dp-paint"),
        ("07_scaling", ".attn-plot"),
    ):
        page = reader.open(f"book/{name}.html")
        seen = page.locator(selector).first
        seen.scroll_into_view_if_needed()
        assert seen.evaluate("one => getComputedStyle(one).forcedColorAdjust") == "none", selector
    page = reader.open("book/19_circuits.html")
    field = page.locator(".he-field").first
    field.scroll_into_view_if_needed()
    shades = Image.open(BytesIO(field.screenshot())).convert("L").getcolors(256)
    assert len(shades) > 20  # not one colour: maps
    somebody.close()


def test_without_scripts_highlighted_words_are_readable(browser, address):
    for scheme in ("light", "dark"):
        quiet = visitor(browser, java_script_enabled=False, color_scheme=scheme)
        page = quiet.new_page()
        page.goto(f"{address}/{CHAPTERS[4]}")
        lit = page.locator(".attn-strip .attn-lit > *").first
        ground, ink = lit.evaluate(
            "one => [getComputedStyle(one).backgroundColor, getComputedStyle(one).color]"
        )
        light = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (ground, ink)]
        assert abs(light[0] - light[1]) > 400, (ground, ink)
        quiet.close()


def test_on_a_phone_each_link_onward_has_a_line_of_its_own(browser, address):
    somebody = visitor(browser, viewport=PHONE)
    page = PageReader(somebody, address).open("book/05_kqv.html")
    ways = page.locator(".prev-next-area a")
    assert ways.count() == 2
    assert all(way.bounding_box()["width"] > 300 for way in ways.all())
    somebody.close()


def test_a_link_to_a_folded_piece_opens_it(reader):
    page = reader.open("book/10_masking.html#before-the-softmax-not-after")
    piece = page.locator("#before-the-softmax-not-after > details.attn-deeper")
    expect(piece).to_have_attribute("open", "")


# --- every page -----------------------------------------------------------------------------------


@pytest.mark.parametrize("opened_page", [*PAGES, "search.html", "genindex.html"], indirect=True)
def test_a_page_loads_nothing_from_other_hosts(opened_page, page):
    assert opened_page.elsewhere == []
    assert opened_page.errors == []
    formulas = page.locator(".bd-article :is(span, div).math:not(.attncourse-view *)")
    assert page.locator("mjx-container").count() >= formulas.count()
    assert page.locator("mjx-merror, [data-mjx-error]").count() == 0


@pytest.mark.parametrize("name", PAGES)
def test_headings_go_down_one_level_at_a_time(soup, name):
    levels = [int(h.name[1]) for h in soup(name).select("article :is(h1, h2, h3, h4, h5, h6)")]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("name", PAGES)
def test_every_picture_is_described(soup, name):
    plots = soup(name).select("article :is(.attn-plots, .attn-plot:not(.attn-plots > *))")
    assert all(plot.get("role") == "img" for plot in plots)
    for image in [*soup(name).select("article img:not(.attn-badges img)"), *plots]:
        text = image.get("alt") or image.get("aria-label", "")
        assert len(text) >= 30, image
        assert not re.fullmatch(r"\S*[0-9a-f]{12,}\S*|\S+\.(svg|png)", text), image


@pytest.mark.parametrize("opened_page", CHAPTERS, indirect=True)
def test_code_and_what_it_prints_are_not_cut_off(page):
    wide = page.evaluate(
        """() => [...document.querySelectorAll("article pre")]
            .filter(box => box.offsetWidth && box.scrollWidth > box.clientWidth + 1)
            .map(box => box.textContent)"""
    )
    assert wide == []


@pytest.mark.parametrize("opened_page", CHAPTERS, indirect=True)
def test_no_line_runs_through_words_of_a_plot(page):
    assert page.evaluate(CROSSED_SCRIPT) == []


@pytest.mark.parametrize("opened_page", CHAPTERS, indirect=True)
def test_the_strip_marks_the_current_chapter(page):
    parts = page.locator(".attn-strip li")
    if Path(page.url).stem[3:] not in strip.LIT:  # it builds with all of them
        assert parts.count() == 0
        return
    assert parts.count() == 8
    assert 1 <= page.locator(".attn-strip .attn-lit").count() <= 4
    assert page.locator(".attn-strip").bounding_box()["height"] <= 60
    for link in page.locator(".attn-strip a").all():
        place = re.search(r"(\d\d)_", link.get_attribute("href"))[1]
        assert link.locator("small").inner_text().split()[-1] == str(int(place))


@pytest.mark.parametrize("opened_page", CHAPTERS, indirect=True)
def test_an_answer_says_if_it_is_right_and_counts(page):
    questions = page.locator(".attn-quiz")
    assert 4 <= questions.count() <= 6
    score = page.locator(".attn-score")
    for number in range(questions.count()):
        assert questions.nth(number).locator("details.attn-right").count() == 1
    first = questions.nth(0)
    wrong = first.locator("details:not(.attn-right)").nth(0)
    wrong.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(score).to_contain_text("Not right. At the first try 0 of 1")
    assert wrong.get_attribute("open") is not None
    first.locator("details.attn-right > summary").click()
    expect(score).to_contain_text("Right. At the first try 0 of 1")
    questions.nth(1).locator("details.attn-right > summary").click()
    expect(score).to_contain_text("Right. At the first try 1 of 2")
    shown = "element => getComputedStyle(element, '::before').content"
    assert "Not right" in wrong.locator(".sd-summary-text").evaluate(shown)


@pytest.mark.parametrize("opened_page", CHAPTERS, indirect=True)
def test_the_strip_and_letters_in_plots_can_be_read_on_a_phone(on_phone):
    page = on_phone
    assert all(strip.bounding_box()["height"] <= 60 for strip in page.locator(".attn-strip").all())
    page.evaluate(
        """() => document.querySelectorAll("details:not([open])").forEach(one => {
            one.open = true;
            one.dataset.shut = "";
        })"""
    )
    assert min(page.evaluate(LETTERS), default=12) >= 11
    page.evaluate(
        "document.querySelectorAll('[data-shut]').forEach(one => one.removeAttribute('open'))"
    )


@pytest.mark.parametrize("opened_page", [*PAGES, "search.html", "genindex.html"], indirect=True)
def test_a_page_is_accessible(page):
    """WCAG 2.2 AA as axe sees it: dark on a phone, which never scrolls sideways, wide and light.

    Nothing but contrast depends on the colours, and no colour on the size: so the two see what
    four would. What one page has of its own is named and described alike in both, so the first
    looks for what may differ. On the first page all is looked at in all four.
    """
    page.evaluate(axe())
    page.evaluate(THINNED_SCRIPT)
    page.add_style_tag(content="* { transition: none !important; }")  # colours that fade mislead
    violations, first = {}, page.url.endswith(f"/{PAGES[0]}")
    for size, usual in ((PHONE, "dark"), (WIDE, "light")):
        page.set_viewport_size(size)
        for scheme in ("light", "dark") if first else (usual,):
            page.emulate_media(color_scheme=scheme)
            page.wait_for_function(f"document.documentElement.dataset.theme == '{scheme}'")
            rules = WCAG if size is WIDE or first else THEME_RULES
            violations |= {(size["width"], scheme): page.evaluate(AXE, rules)}
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    assert {key: problems for key, problems in violations.items() if problems} == {}


@pytest.mark.parametrize("width", [320, 640])
@pytest.mark.parametrize("name", [CHAPTERS[4], "book/instructors.html"])
def test_a_page_at_double_zoom_never_scrolls_sideways(reader, name, width):
    """At 200 % a screen of 1280 or 640 pixels has room for so many: WCAG's reflow is at 320."""
    page = reader.open(name)
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    strip_box = page.locator(".attn-strip")
    if strip_box.count():
        assert strip_box.evaluate("e => e.scrollWidth <= e.clientWidth")


def test_all_content_of_a_page_is_in_a_landmark(reader):
    page = reader.open("book/notation.html")
    page.evaluate(axe())
    assert page.evaluate(AXE, ["region"]) == []


def test_plots_follow_light_and_dark(reader):
    page = reader.open("book/05_kqv.html")
    plot, seen = page.locator(".attn-plot").first, set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(f"document.documentElement.dataset.theme == '{scheme}'")
        seen.add(plot.evaluate("e => getComputedStyle(e).color"))
    assert seen == {"rgb(31, 35, 40)", "rgb(230, 237, 243)"}


def test_internal_links_resolve(html, soup):
    paths = [path for path in html.rglob("*.html") if "_static" not in path.parts]
    pages = {path: soup(str(path.relative_to(html))) for path in paths}
    names = {path: {e["id"] for e in page.select("[id]")} for path, page in pages.items()}
    for path, page in pages.items():  # a figure in a state that a link names
        names[path] |= {f"set={e['data-figure']}" for e in page.select("[data-figure]")}
    checked, broken = 0, []
    for path, page in pages.items():
        for element in page.select("[href], [src]"):
            target = element.get("href") or element.get("src") or ""
            if urlsplit(target).scheme or target.startswith("//") or target in ("", "#"):
                continue
            file, fragment = urldefrag(target)
            place = (path.parent / unquote(urlsplit(file).path)).resolve() if file else path
            checked += 1
            known = names.get(place)
            place_in_it = unquote(fragment)
            if place_in_it.startswith("set="):
                place_in_it = place_in_it.partition("&")[0]
            lost = fragment and known is not None and place_in_it not in known
            if not place.exists() or lost:
                broken.append((path.name, target))
    assert checked > 300
    assert broken == []


# --- what a reader does ---------------------------------------------------------------------------


PAGES_WITH_VERBS = [
    page for page in PAGES if "{do}`" in (ROOT / page).with_suffix(".md").read_text()
]


@pytest.mark.parametrize("name", PAGES_WITH_VERBS)
def test_verbs_in_the_text_set_their_figure(reader, name):
    """Each can be pressed and finds its controls; the real model's are looked at unloaded."""
    page = reader.open(name)
    words = page.locator(".attn-do")
    for verb in words.all():
        if "real_model" in verb.get_attribute("data-do"):
            lost = verb.evaluate(
                """words => words.dataset.do.split("&").slice(1).map(decodeURIComponent)
                    .map(step => step.match(/^[^=!]+/)[0]).filter(name => name !== "word"
                        && !document.querySelector(`[data-part="${name}"]`))"""
            )
            assert lost == []
            continue
        assert "attn-can" in verb.get_attribute("class")
        verb.click()
        page.wait_for_timeout(100)
        messages = page.locator(":is(.am-say, .av-say, .as-says)").all_inner_texts()
        assert not any("another edition" in text for text in messages), verb.inner_text()
    assert reader.errors == []


def test_the_search_finds_what_is_on_the_pages(reader):
    page = reader.open("search.html?q=bandwidth")
    expect(page.locator(".search-summary")).to_contain_text("found")  # then all are listed
    assert any(
        "03_lookup" in a.get_attribute("href") for a in page.query_selector_all("ul.search a")
    )
    assert reader.elsewhere == reader.errors == []


def test_the_dark_button_makes_the_book_dark(browser, address):
    somebody = visitor(browser)  # whose choice is kept
    page = PageReader(somebody, address).open(CHAPTERS[0])
    theme = "document.documentElement.dataset.theme"
    seen = {page.evaluate(theme)}
    for _ in range(3):
        page.locator("button.theme-switch-button:visible").first.click()
        seen.add(page.evaluate(theme))
    somebody.close()
    assert seen == {"light", "dark"}


def test_previous_and_next_lead_through_the_whole_book(html, soup):
    for name, following in pairwise(PAGES):
        link = soup(name).select_one("a.right-next")["href"]
        assert (html / name).parent.joinpath(link).resolve() == html / following


def test_scrolling_boxes_can_be_reached_by_keyboard(reader):
    page = reader.open("book/instructors.html")
    page.set_viewport_size(PHONE)
    page.wait_for_function(
        """() => {
            const wide = [...document.querySelectorAll(".bd-article *")].filter(e =>
                e.scrollWidth > e.clientWidth + 1
                && /auto|scroll/.test(getComputedStyle(e).overflowX));
            return wide.length && wide.every(e => e.tabIndex === 0);
        }"""
    )


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_says_how_long_it_takes(html, name):
    text = (html / name).read_text(encoding="utf-8")
    assert re.search(r"About \d+ minutes to read · \d exercises, \d+ points, about \d+ min", text)


def test_the_attention_map_answers_to_the_pointer_and_to_keys(reader):
    page = reader.open("book/05_kqv.html")
    view = page.locator(".attncourse-view").first
    status = view.locator(".av-say")
    picker = view.locator(".av-pick select")
    picker.select_option(label="query and key")
    if not view.locator("details[open]").count():
        view.locator("summary").click()
    grid = view.locator("table.av-grid:visible")
    row = grid.locator("tbody tr").nth(4)
    row.locator("td").nth(2).hover()
    expect(status).to_contain_text("query “it” attends to key “sushi” with weight 0.89")
    row.locator("td").nth(2).click()
    page.keyboard.press("ArrowRight")
    expect(status).to_contain_text("query “it” attends to key “because”")
    page.keyboard.press("ArrowDown")
    expect(status).to_contain_text("query “makes” attends to key “because”")
    page.keyboard.press("Home")
    expect(status).to_contain_text("query “makes”")
    assert view.locator("[tabindex='0']:focus").count() == 1
    picker.select_option(label="one vector")
    assert view.locator("table.av-grid:visible tbody td").nth(4 * 8 + 2).inner_text() == "0.10"


def test_the_first_page_begins_with_a_real_head_to_touch(reader):
    page = reader.open(PAGES[0])
    figure = page.locator(".attncourse-moving").first
    box = figure.bounding_box()
    assert box["y"] + box["height"] <= WIDE["height"]
    status = figure.locator(".am-say")
    expect(status).to_contain_text("“She” looks at “cat”")
    page.wait_for_function("() => window.attncourseRealHeads")
    figure.locator("[data-part=sentence]").select_option("1")
    expect(status).to_contain_text("“It” looks at")


def test_the_first_page_has_a_sentence_to_touch(reader):
    figure = reader.open(PAGES[0]).locator(".attncourse-moving[data-figure=playground]")
    status = figure.locator(".am-say")
    expect(status).to_contain_text("“it” listens most to “sushi”")
    figure.locator(".pg-chip").first.click()
    expect(status).to_contain_text("“I” listens most to")


@pytest.mark.parametrize(
    ("name", "number"), [("book/02_mixing.html", 1), ("book/03_lookup.html", 2)]
)
def test_sliders_move_by_key(reader, name, number):
    page = reader.open(name)
    sliders = page.locator(".attncourse-slider[data-moves]")
    assert sliders.count() == number
    for at in range(number):
        slider = sliders.nth(at)
        control = slider.locator("input[type=range]")
        control.focus()
        page.keyboard.press("Home")
        first = (
            control.get_attribute("aria-valuetext"),
            slider.locator(".as-panel").first.inner_html(),
        )
        for _ in range(12):  # at the cold end a few steps change nothing that can be seen
            page.keyboard.press("ArrowRight")
        now = (
            control.get_attribute("aria-valuetext"),
            slider.locator(".as-panel").first.inner_html(),
        )
        assert now[0] != first[0]
        assert now[1] != first[1]
        assert slider.locator(".as-says").inner_text().strip()


def test_maps_and_sliders_can_be_read_without_scripts(browser, address):
    quiet = PageReader(visitor(browser, java_script_enabled=False), address)
    quiet.page.goto(f"{address}/book/05_kqv.html")
    cells = quiet.page.locator(".attncourse-view").first.locator("tbody td")
    assert cells.nth(0).is_visible()
    assert re.fullmatch(r"\d\.\d\d", cells.nth(0).inner_text())
    quiet.page.goto(f"{address}/book/03_lookup.html")
    slider = quiet.page.locator(".attncourse-slider").first
    assert slider.locator("svg.as-plot").first.is_visible()
    assert slider.locator(".as-note").is_visible()
    quiet.page.context.close()


def test_formulas_have_the_colours_of_queries_keys_and_values(reader):
    page = reader.open("book/notation.html")
    page.evaluate(
        "html => document.querySelector('article').insertAdjacentHTML('beforeend', html)",
        formulas.page_with_formulas(
            r'<p id="coloured"><span class="math">'
            r"\(\query{Q}\key{K}^\top\val{V}\weight{A}\)</span></p>"
        ),
    )
    shown = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(f"document.documentElement.dataset.theme == '{scheme}'")
        shown[scheme] = page.evaluate(
            """() => ["query", "key", "value", "weight"].map(name => {
                const style = getComputedStyle(document.documentElement);
                const wanted = document.createElement("i");
                wanted.style.color = `var(--attn-${name === "weight" ? "ink" : name})`;
                document.body.append(wanted);
                const glyph = document.querySelector(`#coloured .attn-${name} use, `
                    + `#coloured .attn-${name} path`);
                return [getComputedStyle(glyph).fill, getComputedStyle(wanted).color];
            })"""
        )
        assert all(fill == colour for fill, colour in shown[scheme]), shown
        assert len({fill for fill, _ in shown[scheme]}) == 4
    assert shown["light"] != shown["dark"]
    assert reader.errors == reader.elsewhere == []
    assert page.locator("mjx-merror, [data-mjx-error]").count() == 0


def test_a_page_opened_from_a_folder_is_whole(browser, html):
    """A browser gives such a page no fonts and no data of other files, and says so as an error."""
    page, errors, loaded = browser.new_page(), [], []
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("requestfinished", lambda request: loaded.append(request.url))
    page.goto((html / CHAPTERS[4]).as_uri(), wait_until="load")
    page.evaluate("() => document.fonts.ready.then(() => 0)")
    assert errors == []
    assert not any("fontawesome" in url for url in loaded)
    assert page.locator("mjx-container svg").count() > 10
    fonts = page.evaluate("() => [...document.fonts].map(font => `${font.family} ${font.status}`)")
    for family in ("Free", "Brands"):
        assert any(f"Font Awesome 6 {family}" in f and f.endswith(" loaded") for f in fonts), fonts
    page.close()


@pytest.mark.parametrize("name", [PAGES[0], CHAPTERS[0], "book/field_guide.html"])
def test_every_sign_on_a_button_is_in_the_small_fonts(html, name):
    from fontTools.ttLib import TTFont

    style = (html / "_static" / "icons.css").read_text(encoding="utf-8")
    known = set()
    for data in re.findall(r"base64,([^\"]+)", style):
        known |= set(TTFont(BytesIO(b64decode(data))).getBestCmap())
    code_of = dict(re.findall(r'\.(fa-[\w-]+)::before { content: "\\([0-9a-f]+)"', style))
    text = (html / name).read_text(encoding="utf-8")
    shown = set(re.findall(r"\bfa-[a-z-]+", text)) - {"fa-solid", "fa-brands", "fa-lg"}
    assert len(shown) >= 8
    for sign in shown:
        assert int(code_of[sign], 16) in known, sign
    assert len(style) < 20_000


def test_every_button_above_a_page_shows_keyboard_focus(reader):
    page = reader.open(CHAPTERS[0])
    for size in (WIDE, PHONE):
        page.set_viewport_size(size)
        buttons = page.locator(".bd-header-article :is(button, a):visible")
        assert buttons.count() >= 5
        page.keyboard.press("Tab")  # the browser shows focus once keys are used
        for number in range(buttons.count()):
            buttons.nth(number).focus()
            style, width = buttons.nth(number).evaluate(
                """e => {
                    const style = getComputedStyle(e);
                    return [style.outlineStyle, parseFloat(style.outlineWidth)];
                }"""
            )
            assert (style, width >= 2) == ("solid", True), buttons.nth(number).inner_html()


def test_captions_are_as_heavy_as_the_text(reader):
    page = reader.open("book/05_kqv.html")
    weights = page.locator("figcaption .caption-text").evaluate_all(
        "all => all.map(caption => getComputedStyle(caption).fontWeight)"
    )
    assert set(weights) == {"400"}


def test_a_scrolling_box_fades_at_its_cut_edge(reader):
    page = reader.open("book/instructors.html")
    page.set_viewport_size(PHONE)
    page.wait_for_function("document.querySelectorAll('[data-more]').length > 0")
    wide = page.locator(".pst-scrollable-table-container[data-more]").first
    mask = "e => getComputedStyle(e).maskImage"
    assert wide.get_attribute("data-more") == "right"
    assert re.search(r"rgba\(0, 0, 0, 0\)\)$", wide.evaluate(mask))
    wide.evaluate("e => e.scrollLeft = 10")
    expect(wide).to_have_attribute("data-more", "left right")
    wide.evaluate("e => e.scrollLeft = 10000")
    expect(wide).to_have_attribute("data-more", "left")
    assert re.search(r"to right, rgba\(0, 0, 0, 0\)", wide.evaluate(mask))
    page.set_viewport_size({"width": 2000, "height": 900})
    expect(page.locator(":is([data-more*=left], [data-more*=right])")).to_have_count(0)


def test_the_course_map_is_one_way_with_signs(reader):
    page = reader.open(PAGES[0])
    # All boxes in one call: what is still being drawn above may move the map between two.
    boxes = """() => ["a", "svg"].map(what => [...document.querySelectorAll(`.attn-map ${what}`)]
        .map(e => e.getBoundingClientRect()).map(b => [b.x, b.y, b.right, b.bottom]))"""
    for size in (WIDE, PHONE):
        page.set_viewport_size(size)
        stops, signs = page.evaluate(boxes)
        assert len(stops) == len(signs) == len(CHAPTERS)
        assert all(above[3] <= below[1] for above, below in pairwise(signs))
        for words, sign in zip(stops, signs, strict=True):
            assert words[0] >= sign[2]
            assert abs(words[1] - sign[1]) < 12


def test_the_field_guide_can_be_searched_by_key(reader):
    page = reader.open("book/field_guide.html")
    box, status = page.get_by_label("Find a mistake"), page.locator(".attn-filter [role=status]")
    entries, shown = page.locator(".attn-bug"), page.locator(".attn-bug:visible")
    total = entries.count()
    box.focus()
    page.keyboard.type("Softmax columns")
    words = [text.lower() for text in shown.all_text_contents()]
    assert 0 < len(words) < total / 4
    expect(status).to_have_text(f"{len(words)} of {total} entries match.")
    for text in words:
        assert "columns" in text
    assert page.locator("#guide-symptoms").is_hidden()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('section').hidden") is False
    box.fill("no mistake is called this")
    expect(status).to_have_text(f"0 of {total} entries match.")
    assert page.locator("section[id^=guide-]:visible").count() == 0
    box.press("Escape")
    expect(status).to_have_text("")
    assert shown.count() == total
    box.fill("zzz")
    page.evaluate("location.hash = document.querySelectorAll('.attn-bug')[5].id")
    expect(entries.nth(5)).to_be_visible()
    assert entries.nth(5).get_attribute("open") is not None


def test_an_entry_of_the_field_guide_is_made_when_it_is_opened(reader):
    """All at once are 74,000 elements, which take a browser six seconds to show."""
    page = reader.open("book/field_guide.html")
    assert page.evaluate("document.querySelectorAll('*').length") < 16_000
    entry = page.locator(".attn-bug").nth(7)
    assert entry.locator("pre").count() == 0
    entry.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(entry.locator("pre").first).to_be_visible()
    expect(entry.locator("p").last).to_contain_text("Read again: Chapter")
    assert entry.locator("p a").last.get_attribute("href").endswith(("html", "#")) is False
    assert entry.locator("script").count() == 0
    assert reader.errors == []


def test_the_field_guide_prints_as_it_is_seen(reader):
    """Entries that are folded are a list on paper: unfolded, they were 1,443 pages."""
    page = reader.open("book/field_guide.html")
    page.locator(".attn-bug summary").nth(7).click()
    printed = PdfReader(BytesIO(page.pdf()))
    assert 20 < len(printed.pages) < 120
    assert page.locator(".attn-bug pre").first.is_visible()
    assert page.locator(".attn-bug[open]").count() == 1
    page.get_by_label("Find a mistake").fill("softmax over axis 0")
    expect(page.locator(".attn-filter [role=status]")).to_contain_text("match")
    assert len(PdfReader(BytesIO(page.pdf())).pages) < 12


def search_results(reader: PageReader, query: str) -> list[str]:
    """Return the links of a search's first results, without the words to highlight."""
    page = reader.open(f"search.html?q={query.replace(' ', '+')}")
    expect(page.locator(".search-summary")).to_contain_text("found")
    links = [a.get_attribute("href") for a in page.locator("ul.search li > a").all()]
    assert reader.errors == reader.elsewhere == []
    return [re.sub(r"\?[^#]*", "", link) for link in links]


@pytest.mark.parametrize(
    ("term", "chapter"),
    [
        ("mask", "10_masking"),
        ("masks", "10_masking"),
        ("multi-head", "09_multihead"),
        ("queries keys values", "05_kqv"),
        ("scaling", "07_scaling"),
        ("cross attention", "08_cross_attention"),
        ("key", "05_kqv"),
    ],
)
def test_the_search_puts_first_the_chapter_that_a_term_names(reader, term, chapter):
    links = [link for link in search_results(reader, term) if "glossary" not in link]
    assert links[0] == f"book/{chapter}.html"


@pytest.mark.parametrize("term", ["softmax", "mask", "key", "attention sink"])
def test_search_shows_glossary_then_sections_and_loads_little(reader, term):
    loaded = []
    reader.page.on("requestfinished", lambda request: loaded.append(request))
    links = search_results(reader, term)
    assert links[0] == f"book/glossary.html#term-{term.replace(' ', '-')}"
    assert sum("#" in link for link in links[1:]) >= 3
    shown = reader.page.locator("ul.search li p")
    expect(shown).to_have_count(len(links))
    for text in shown.all_inner_texts():  # prose: no code, no navigation
        assert len(text) > 20
        assert not re.search(r"torch\.|import |def |JavaScript|Contents", text), text
    search_requests = [r for r in loaded if "/search" in r.url]
    assert sum(len(r.response().body()) for r in search_requests) < 300_000
    for link in links[1:4]:
        reader.open(link)
        place = urldefrag(link).fragment
        assert not place or reader.page.locator(f"[id='{place}']").count() == 1


def test_the_search_icon_stands_before_the_first_letter(reader):
    page = reader.open("search.html?q=mask")
    field = page.locator(".bd-search-container form.bd-search")
    sign, words = (
        field.locator(selector).bounding_box() for selector in (".fa-magnifying-glass", "input")
    )
    assert sign["x"] + sign["width"] <= words["x"]


def test_a_search_without_results_says_so(reader):
    page = reader.open("search.html?q=zzzyx+mask")
    expect(page.locator(".search-summary")).to_contain_text("Nothing found.")


def test_formulas_are_shown_without_scripts(browser, address):
    quiet = PageReader(visitor(browser, java_script_enabled=False), address)
    quiet.page.goto(f"{address}/{CHAPTERS[4]}")
    shown = quiet.page.locator(".bd-article mjx-container svg")
    assert shown.count() > 100
    assert shown.first.bounding_box()["height"] > 5
    assert quiet.page.locator("mjx-assistive-mml math").count() == shown.count()
    assert "\\(" not in quiet.page.locator(".bd-article").inner_text()
    quiet.page.context.close()


def test_a_copied_formula_is_its_tex(reader):
    page = reader.open("book/05_kqv.html")
    copied = page.evaluate(
        """() => {
            const formula = document.querySelector("p mjx-container[data-tex]");
            getSelection().selectAllChildren(formula.closest("p"));
            const event = new ClipboardEvent("copy",
                {clipboardData: new DataTransfer(), cancelable: true, bubbles: true});
            document.dispatchEvent(event);
            return [event.clipboardData.getData("text/plain"), formula.dataset.tex];
        }"""
    )
    assert f"${copied[1]}$" in copied[0]
    assert len(copied[0]) > len(copied[1]) + 20  # and the words around it


# --- what the world is told, and what can be taken away -------------------------------------------


@pytest.mark.parametrize("name", PAGES)
def test_a_shared_link_says_what_it_leads_to(html, soup, name):
    page, course = soup(name), settings.load(ROOT)
    assert page.title.get_text().count(course.title) == 1
    metadata = {m.get("property") or m.get("name"): m.get("content") for m in page.select("meta")}
    assert 20 <= len(metadata["description"]) <= 202
    assert metadata["og:description"] == metadata["description"]
    assert metadata["og:title"] in page.title.get_text()
    assert (
        metadata["og:url"] == page.select_one("link[rel=canonical]")["href"] == course.site + name
    )
    assert metadata["og:image"].startswith(course.site)
    picture = (html / metadata["og:image"].removeprefix(course.site)).read_bytes()
    assert struct.unpack(">II", picture[16:24]) == (1200, 630)


def test_the_sitemap_names_every_page(html):
    course = settings.load(ROOT)
    places = ElementTree.parse(html / "sitemap.xml").findall(".//{*}loc")
    assert [place.text for place in places] == [course.site + name for name in PAGES]


def test_a_missing_page_leads_back_from_any_depth(reader):
    for place in ("nowhere.html", "book/nowhere.html", "book/deep/down/nowhere"):
        page = reader.open(place)
        assert "There is no such page" in page.locator("article h1").inner_text()
        page.get_by_role("link", name="first page").click()
        page.wait_for_url(f"**/{PAGES[0]}")
    assert reader.elsewhere == []
    assert all("404" in error for error in reader.errors)


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_page_offers_the_notebooks_that_colab_opens(html, soup, name):
    place, folder, page = html / name, Path(name).stem, soup(name)
    button = page.select_one(".btn-download-notebook-button")["href"]
    offered = (place.parent / button).read_bytes()
    assert offered == (ROOT / "book" / f"{folder}.ipynb").read_bytes()
    task = page.select_one(".attn-task")
    assert task.find_previous(["h1", "h2"]).get_text().rstrip("#").endswith("Exercises")
    source = ROOT / "exercises" / folder / f"{folder}.ipynb"
    assert (
        place.parent / task.select_one("a[download]")["href"]
    ).read_bytes() == source.read_bytes()
    assert task.select_one("a img").parent["href"].endswith(f"exercises/{folder}/{folder}.ipynb")
    marks = [c["metadata"].get("nbgrader", {}) for c in json.loads(source.read_bytes())["cells"]]
    points = sum(mark["points"] for mark in marks if mark.get("grade"))
    known = [e for e in exercises().values() if e.stem == folder[3:]]
    minutes = sum(exercise.minutes for exercise in known)
    questions = sum(mark.get("grade", False) and mark["solution"] for mark in marks)
    words = f"{len(known) + questions} exercises, {points} points, about {minutes} minutes"
    assert words in task.get_text()
    assert words in page.select_one(".attn-line").get_text()


def test_pages_without_a_notebook_offer_none(html):
    for name in set(PAGES) - set(CHAPTERS):
        assert "btn-download-notebook-button" not in (html / name).read_text(encoding="utf-8")


def test_references_are_spaced_and_link_to_arxiv(reader):
    page = reader.open("book/bibliography.html")
    entries = page.locator(".citation")
    boxes = [entry.bounding_box() for entry in entries.all()]
    assert len(boxes) > 30
    assert all(b["y"] - (a["y"] + a["height"]) >= 8 for a, b in pairwise(boxes))
    assert page.locator(".citation .label:visible").count() == 0
    text = page.locator("article").inner_html()
    numbers = re.findall(r"arXiv:(\d{4}\.\d{4,5})", text)
    assert len(numbers) > 5
    for number in numbers:
        assert f'href="https://arxiv.org/abs/{number}">' in text


# --- on paper -------------------------------------------------------------------------------------


def entries(outline: list) -> Iterator:
    for entry in outline:
        yield from entries(entry) if isinstance(entry, list) else [entry]


def test_a_page_prints_with_its_number_and_no_empty_box(browser, html):
    page = browser.new_page()
    page.goto((html / CHAPTERS[3]).as_uri())
    page.emulate_media(media="print")
    title = page.locator("h1:visible")
    assert title.count() == 1
    assert title.inner_text().startswith("4. ")
    for selector in (".attn-strip", ".attn-badges", "details.hide:not([open])"):
        assert page.locator(f"{selector}:visible").count() == 0
    boxes = page.locator(".cell_input:visible")
    assert boxes.count() > 5
    assert set(boxes.evaluate_all("all => all.map(e => getComputedStyle(e).breakInside)")) == {
        "avoid"
    }
    page.close()


@pytest.fixture(scope="module")
def paper(browser, html) -> Iterator[Page]:
    """The document of all pages that is printed, not yet printed and its formulas not drawn."""
    page = browser.new_page()
    page.set_content(pdf.whole_book(settings.load(ROOT), html, browser), wait_until="commit")
    yield page
    page.close()


def test_plots_on_paper_use_their_own_glyphs(paper):
    """They stand in one document there, whose ids are renamed."""
    plots = "".join(paper.locator(".attn-plot").evaluate_all("all => all.map(e => e.outerHTML)"))
    ids = re.findall(r' id="([^"]+)"', plots)
    used = re.findall(r'(?:url\((?:&quot;)?|href=")#([\w.-]+)', plots)
    assert len(ids) == len(set(ids)) > 100
    assert set(used) == set(ids)


def test_links_on_paper_lead_inside_it_and_its_names_are_unique(paper):
    links = paper.locator("a[href]").evaluate_all("all => all.map(e => e.getAttribute('href'))")
    names = paper.locator("[id]").evaluate_all("all => all.map(e => e.id)")
    inside = {unquote(link[1:]) for link in links if link.startswith("#")}
    assert len(inside) > 300
    assert inside - set(names) == set()
    assert len(names) == len(set(names))
    assert [link for link in links if not re.match(r"#|https?:|mailto:", link)] == []


def test_paper_has_no_folds_and_every_question_its_answer(paper):
    assert paper.locator("details, summary, button, .cell:empty").count() == 0
    questions, answers = paper.locator(".attn-quiz"), paper.locator(".attn-answer")
    assert questions.count() == answers.count() >= 5 * len(CHAPTERS)
    options = [".attn-options > li", ":scope > div", ":scope > .attn-right"]
    options_asked, answered, right = (
        elements.evaluate_all(f"all => all.map(e => e.querySelectorAll('{selector}').length)")
        for elements, selector in zip((questions, answers, answers), options, strict=True)
    )
    assert options_asked == answered
    assert set(right) == {1}
    titles = answers.first.locator("xpath=../h2").inner_text()
    assert titles == "Answers to the questions"


def test_pages_print_as_one_file_whose_contents_say_where(html, tmp_path):
    """Two of the book's pages show what all would, in a fraction of the time.

    That the whole takes at most 300 is asserted where it is printed: in the workflow of a release.
    """

    names, target = ["book/notation.html", CHAPTERS[4]], tmp_path / "two.pdf"
    stems = [name.removesuffix(".html") for name in names]
    process = run_tool("pdf", *stems, "--root", html.parents[1], "--output", target)
    assert process.returncode == 0, process.stdout + process.stderr
    printed = PdfReader(target)
    pages = [" ".join(page.extract_text().split()) for page in printed.pages]
    assert f"({len(pages)} pages, " in process.stdout
    assert 12 < len(pages) < 30
    assert f"Version {__version__}" in pages[0]
    # Every page but the title's has its number, which a reader of text meets first.
    assert [text.split()[0] for text in pages[1:]] == [str(n + 2) for n in range(len(pages) - 1)]
    titles = [
        BeautifulSoup((html / name).read_text(encoding="utf-8"), "html.parser").h1 for name in names
    ]
    outline = [entry.title for entry in printed.outline if not isinstance(entry, list)]
    chapters = [title.get_text().rstrip("#") for title in titles]
    assert [re.sub(r"^\d+\. ", "", title) for title in outline] == ["Contents", *chapters]
    # The contents give each chapter and section the page on which its heading is.
    headings = [entry.title for entry in entries(printed.outline)]
    listed = [title for title in headings if title in pages[1]]
    assert len(listed) > 15
    for title in listed[1:]:
        numbers = re.findall(rf"{re.escape(title)} (\d+)", pages[1])
        assert any(title in pages[int(number) - 1] for number in numbers), title
    # No heading stands alone at a page's end.
    assert [title for title in headings for text in pages[2:] if text.endswith(title)] == []
    text = " ".join(pages)
    assert "\\frac" not in text  # formulas are drawn
    assert "(5.1)" in text
    for phrase in ("Read on", "Hide code cell source"):
        assert phrase not in text


def test_too_many_or_missing_pages_are_refused(html, tmp_path):
    """One line each; what was printed stays."""
    target, root = tmp_path / "one.pdf", html.parents[1]
    process = run_tool("pdf", "book/notation", "--most", "1", "--root", root, "--output", target)
    assert (process.returncode, process.stderr) == (1, "it should have at most 1 pages\n")
    assert target.exists()
    process = run_tool("pdf", "book/nothing", "--root", root, "--output", target)
    assert process.returncode == 1
    assert "nothing.html is missing: build the book first (make book)" in process.stderr
