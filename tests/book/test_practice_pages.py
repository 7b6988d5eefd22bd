"""*Find the mistake*: what a reader does with a drill, what is kept of it, what comes next."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import course as settings
import drill_links
import drill_pages
import pytest
from bs4 import BeautifulSoup
from chromium import ABSENT, BROWSER
from drill_pages import markup
from playwright.sync_api import expect

from attncourse.practice.drills import DrillExample, MendElsewhere
from helpers.drill_reader import FIXTURE, DrillReader, drills_by_hand, write_pages
from helpers.project import ROOT

DRILLS = drills_by_hand()
BY_ID = {drill.id: drill for drill in DRILLS}
MASK_DRILL = "kqv-scaled_dot_product_attention-3"
TWO_FIXES_DRILL = "kqv-attention_scores-1"  # another line mends it as well
STEMS = ("kqv", "masking")
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
HOUR_IN_MS = 60 * 60 * 1000

needs_browser = pytest.mark.skipif(BROWSER is None, reason=ABSENT)


@pytest.fixture(scope="module")
def drilled():
    """Return the course with hand-written drills in two chapters."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drill_links, "drills_of", lambda s: drills_by_hand(s) if s in STEMS else ())
        patch.setattr(drill_pages, "drills_file", lambda stem: FIXTURE)
        course = settings.load(ROOT)
        pages = tuple(dict.fromkeys((*course.pages, drill_links.PRACTICE)))
        yield replace(course, pages=pages, title="with drills by hand")


@pytest.fixture(scope="module")
def folder(drilled, tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("drills")
    write_pages(made, drilled, STEMS)
    return made


@pytest.fixture
def opened(browser, folder):
    """Yield a function that opens pages; afterwards no page has had an error."""
    readers = []

    def opens(page: str = "practice.html", **options) -> DrillReader:
        readers.append(DrillReader(browser, folder, page, **options))
        return readers[-1]

    yield opens
    for reader in readers:
        reader.close()


# --- a drill --------------------------------------------------------------------------------------


@needs_browser
def test_choosing_line_and_name_shows_the_corrected_code(opened):
    reader, drill = opened(f"practice.html#{MASK_DRILL}"), BY_ID[MASK_DRILL]
    reader.line(drill.line).click()
    expect(reader.box.locator(".ap-verdict")).to_have_text("Right, line 6. What happens there?")
    names = reader.box.locator(".ap-option").all_inner_texts()
    assert sorted(names) == sorted([drill.name, *drill.wrong_names])
    reader.option(drill.name).click()
    expect(reader.box.locator(".ap-verdict")).to_have_text("Right: the mask is inverted.")
    result = reader.box.locator(".ap-result")
    assert drill.sentence.replace("`", "") in result.inner_text()
    assert result.locator("pre").all_inner_texts() == [
        "scores = scores.masked_fill(mask, -math.inf)",
        "scores = scores.masked_fill(~mask, -math.inf)",
    ]
    links = result.locator("a").evaluate_all("all => all.map(a => a.getAttribute('href'))")
    assert links == [
        "05_kqv.html#from-scores-to-an-answer",
        "field_guide.html#kqv-scaled-dot-product-attention-the-mask-is-inverted",
    ]
    assert reader.record["drills"][MASK_DRILL]["row"] == 1


@needs_browser
@pytest.mark.parametrize(("line", "name"), [(False, True), (True, False), (False, False)])
def test_a_drill_is_right_only_with_line_and_name(opened, line, name):
    reader = opened(f"practice.html#{MASK_DRILL}")
    reader.solve(DRILLS, line, name)
    assert reader.record["drills"][MASK_DRILL]["row"] == 0
    assert reader.record["drills"][MASK_DRILL]["seen"] == reader.record["count"] == 1
    verdict = reader.box.locator(".ap-verdict").inner_text()
    assert ("You said: the mask is ignored." in verdict) == (not name)
    assert verdict.startswith("Right" if name else "Not right")


@needs_browser
def test_a_wrong_line_is_answered_with_the_right_one(opened):
    reader = opened(f"practice.html#{MASK_DRILL}")
    reader.line(0).click()
    verdict = reader.box.locator(".ap-verdict")
    expect(verdict).to_have_text("Not line 1: it is line 6. What happens there?")
    expect(reader.line(0)).to_contain_text("(you chose this line)")
    expect(reader.line(5)).to_contain_text("(this is the wrong line)")
    assert reader.box.locator("button.ap-line").count() == 0  # there is one try


@needs_browser
def test_another_line_that_fixes_it_is_right_as_well(opened):
    reader, drill = opened(f"practice.html#{TWO_FIXES_DRILL}"), BY_ID[TWO_FIXES_DRILL]
    reader.line(7).click()
    verdict = reader.box.locator(".ap-verdict")
    expect(verdict).to_have_text(
        "Right: it can be mended in line 8. What was changed is line 7. What happens there?"
    )
    expect(reader.line(6)).to_contain_text("(this is the wrong line)")
    expect(reader.line(7)).to_contain_text("(you chose this line, which mends it as well)")
    reader.option(drill.name).click()
    result = reader.box.locator(".ap-result")
    assert result.locator("pre").all_inner_texts() == [
        "scores = torch.bmm(flat_key, flat_query.mT)",
        "scores = torch.bmm(flat_query, flat_key.mT)",
        "return scores.reshape(*shared, n_queries, n_keys)",
        "return scores.mT.reshape(*shared, n_queries, n_keys)",
    ]
    assert "Or line 8" in result.inner_text()
    assert reader.record["drills"][TWO_FIXES_DRILL]["row"] == 1
    reader.another()
    reader.open(f"practice.html#{TWO_FIXES_DRILL}")
    reader.line(6).click()  # who says the drill's own line is told of no other
    reader.option(drill.name).click()
    assert result.locator("pre").count() == 2
    assert reader.record["drills"][TWO_FIXES_DRILL]["row"] == 2


@needs_browser
def test_the_keyboard_alone_leads_through_a_drill(opened):
    reader, drill = opened(f"practice.html#{MASK_DRILL}"), BY_ID[MASK_DRILL]
    page = reader.page
    focused = "() => document.activeElement"
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate(f"({focused})().matches('button.ap-line')"):
            break
    for _ in range(drill.line + 3):  # past it
        page.keyboard.press("ArrowDown")
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    page.keyboard.press("Home")
    page.keyboard.press("End")
    expect(reader.line(len(drill.code) - 1)).to_be_focused()
    for _ in range(len(drill.code) - 1 - drill.line):
        page.keyboard.press("ArrowUp")
    expect(reader.line(drill.line)).to_be_focused()
    assert reader.box.locator("button.ap-line[tabindex='0']").count() == 1
    page.keyboard.press("Enter")
    expect(reader.box.locator(".ap-option").first).to_be_focused()
    names = reader.box.locator(".ap-option").all_inner_texts()
    for _ in range(names.index(drill.name)):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    expect(reader.box.locator(".ap-verdict")).to_contain_text("Right: the mask is inverted")
    expect(reader.box.locator(".ap-result")).to_be_focused()
    while page.evaluate(f"({focused})().textContent") != "Another one":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(reader.box).not_to_have_attribute("data-drill", MASK_DRILL)
    expect(reader.box.locator("button.ap-line").first).to_be_focused()


@needs_browser
def test_a_screen_reader_reads_question_choice_and_verdict(opened):
    reader, drill = opened(f"practice.html#{MASK_DRILL}"), BY_ID[MASK_DRILL]
    tree = reader.box.aria_snapshot()
    assert '- group "Which line is wrong?":' in tree
    assert '- button "Line 6 scores = scores.masked_fill(mask, -math.inf)"' in tree
    assert '- table "should give":' in tree
    reader.line(0).click()
    tree = reader.box.aria_snapshot()
    verdict = "Not line 1: it is line 6. What happens there?"
    assert f'status: "{verdict}"' in tree
    assert f'group "{verdict}"' in tree
    assert tree.count("- button") >= 4
    reader.option(drill.wrong_names[0]).click()
    tree = reader.box.aria_snapshot()
    assert 'status: "Not right: the mask is inverted. (You said: the mask is ignored.)"' in tree
    assert 'group "Not right: the mask is inverted. (You said: the mask is ignored.)"' in tree


@needs_browser
@pytest.mark.parametrize("drill", DRILLS, ids=lambda drill: drill.id)
def test_a_drill_is_answered_on_one_phone_screen(opened, drill):
    reader = opened(f"practice.html#{drill.id}", **PHONE)
    reader.box.evaluate("one => one.scrollIntoView({ block: 'start' })")
    assert reader.line(drill.line).bounding_box()["height"] >= 24
    reader.line(drill.line).tap()
    for option in reader.box.locator(".ap-option").all():
        expect(option).to_be_in_viewport(ratio=1)
    reader.option(drill.name).tap()
    expect(reader.box.locator(".ap-verdict")).to_be_in_viewport(ratio=1)
    expect(reader.box.locator(".ap-result > p").first).to_be_in_viewport(ratio=1)
    assert reader.page.evaluate("document.documentElement.scrollWidth") <= 390


@needs_browser
def test_the_next_question_comes_into_sight(opened):
    drill = BY_ID[MASK_DRILL]
    reader = opened(
        f"practice.html#{MASK_DRILL}", viewport={"width": 390, "height": 420}, has_touch=True
    )
    reader.box.evaluate("one => one.scrollIntoView({ block: 'start' })")
    reader.line(drill.line).tap()
    expect(reader.box.locator(".ap-option").last).to_be_in_viewport(ratio=1)
    expect(reader.box.locator(".ap-verdict")).to_be_in_viewport(ratio=1)


# --- what comes next ------------------------------------------------------------------------------

ROWS = re.compile(r"^\| (.+?) \| (.+?) \|$", re.MULTILINE)
WORDS = {"a day": 24 * HOUR_IN_MS, "a week": 7 * 24 * HOUR_IN_MS, "a month": 30 * 24 * HOUR_IN_MS}


@needs_browser
def test_a_drill_is_due_when_the_page_says(opened):
    """The table of intervals on the page, against the script."""
    text = (ROOT / "book" / "practice.md").read_text(encoding="utf-8")
    waits = [after.removeprefix("after ") for _, after in ROWS.findall(text)[2:]]
    assert waits[0] == "three other drills"
    assert len(waits) == 4
    is_due = """([row, turn, count, gone]) =>
        attncourseTurns.isDue({row, turn, at: 1e12}, {count}, 1e12 + gone)"""
    page = opened().page
    for row, words in enumerate(waits[1:], 1):
        wait = WORDS[words]
        for gone, due in ((0, False), (wait - 1, False), (wait, True), (-1, True)):
            assert page.evaluate(is_due, [row, 5, 5, gone]) is due, (row, gone)
    assert page.evaluate(is_due, [9, 5, 5, 30 * 24 * HOUR_IN_MS])  # more often in a row: not later
    for others in range(6):
        assert page.evaluate(is_due, [0, 5, 5 + others, HOUR_IN_MS]) is (others >= 3)


def next_drill(page, ids, drills, count=0, last="", at=10**12):
    record = {"count": count, "drills": drills}
    return page.evaluate(
        "([ids, kept, last, at]) => attncourseTurns.next(ids, kept, last, at)",
        [ids, record, last, at],
    )


@needs_browser
def test_missed_drills_come_first_then_due_then_new(opened):
    page, at = opened().page, 10**12
    missed = {"seen": 1, "row": 0, "turn": 1, "at": at - HOUR_IN_MS}
    due = {"seen": 1, "row": 1, "turn": 2, "at": at - 25 * HOUR_IN_MS}
    rested = {"seen": 2, "row": 2, "turn": 3, "at": at - 25 * HOUR_IN_MS}
    longer = {"seen": 3, "row": 3, "turn": 4, "at": at - HOUR_IN_MS}
    record = {"m": missed, "d": due, "r": rested, "l": longer}
    ids = ["l", "new", "r", "d", "m"]
    assert next_drill(page, ids, record, count=4) == "m"
    assert next_drill(page, ids, record, count=3) == "d"  # two others only since it was missed
    assert next_drill(page, ids, record, count=4, last="m") == "d"
    del record["m"], record["d"]
    assert next_drill(page, ["l", "r", "new"], record, count=4) == "new"
    assert next_drill(page, ["l", "r"], record, count=4) == "r"
    assert next_drill(page, ["l", "r"], record, count=4, last="r") == "l"
    assert next_drill(page, ["l"], record, count=4, last="l") == "l"  # there is no other


@needs_browser
def test_new_drills_come_in_an_order_by_chance(opened):
    page, ids = opened().page, list("abcde")
    drills_seen = {next_drill(page, ids, {}, last="e") for _ in range(200)}
    assert drills_seen == set("abcd")  # each by chance left out: 4 · 0.75^200


@needs_browser
def test_a_missed_drill_comes_back_after_three_others(opened):
    reader = opened("practice.html#kqv")
    first = reader.drill
    reader.solve(DRILLS, line_right=False)
    drills_shown = []
    for _ in range(4):
        drills_shown.append(reader.another())
        reader.solve(DRILLS)
    assert first not in drills_shown[:3]
    assert drills_shown[3] == first


@needs_browser
def test_an_unanswered_drill_is_not_counted_as_missed(opened):
    reader = opened()
    reader.another()
    assert reader.record["drills"] == {}
    shown = reader.drill
    drill = next(
        candidate for s in STEMS for candidate in drills_by_hand(s) if candidate.id == shown
    )
    reader.line(len(drill.code) - 1 if drill.line == 0 else 0).click()
    reader.another()
    assert reader.record["drills"][shown]["row"] == 0


# --- the chapter and the page of all --------------------------------------------------------------


@needs_browser
def test_drills_load_when_the_reader_comes_near(browser, drilled, tmp_path):
    write_pages(tmp_path, drilled, STEMS, above=5000)
    reader = DrillReader(browser, tmp_path)
    addresses = []
    reader.page.on("request", lambda request: addresses.append(request.url))
    reader.open("chapter.html")
    assert not any("/drills/" in url for url in addresses)
    assert reader.box.inner_text().strip() == ""  # until then
    reader.page.evaluate("scrollTo(0, 4500)")
    reader.page.wait_for_selector(".attncourse-drill[data-drill]")
    assert [url.rpartition("/")[2].partition("?")[0] for url in addresses if "/drills/" in url] == [
        "kqv.js"
    ]
    expect(reader.box.locator(".ap-still")).to_be_hidden()
    expect(reader.box.locator(".ap-stand")).to_contain_text("0 of this chapter's 5 seen")
    reader.close()


@needs_browser
def test_chapter_and_practice_share_a_record(opened):
    reader = opened("chapter.html")
    first = reader.drill
    reader.solve(DRILLS)
    expect(reader.box.locator(".ap-stand")).to_contain_text("1 of this chapter's 5 seen, 1 right")
    reader.open("practice.html#kqv")
    assert reader.drill != first
    expect(reader.box.locator("summary")).to_have_text("Chapter 5: 1 of 5 drills seen, 0 due")


@needs_browser
def test_drills_come_from_the_chosen_chapters(opened):
    reader = opened()
    expect(reader.box.locator("summary")).to_have_text("All chapters: 0 of 10 drills seen, 0 due")
    reader.box.locator("summary").click()
    reader.page.get_by_label("5. Title of kqv").uncheck()
    for _ in range(8):
        assert reader.another().startswith("masking-")
    reader.open("practice.html")
    assert reader.drill.startswith("masking-")
    expect(reader.box.locator("summary")).to_have_text("Chapter 10: 0 of 5 drills seen, 0 due")
    reader.box.locator("summary").click()
    reader.box.get_by_role("button", name="None", exact=True).click()
    expect(reader.box.locator(".ap-notice")).to_have_text("Choose a chapter.")
    reader.box.get_by_role("button", name="All", exact=True).click()
    assert reader.record["without"] == []


@needs_browser
def test_progress_is_shown_by_chapter(opened):
    reader = opened("practice.html#kqv")
    reader.solve(DRILLS)
    reader.another()
    reader.solve(DRILLS, name_right=False)
    reader.box.locator("summary").click()
    cells = reader.box.locator("tr[data-stem=kqv] td").all_inner_texts()
    assert cells == ["2 of 5", "1", "0"]
    assert reader.box.locator("tr[data-stem=masking] td").all_inner_texts() == ["0 of 5", "0", "0"]


# --- addresses ------------------------------------------------------------------------------------


@needs_browser
def test_an_address_leads_to_its_drill_on_an_open_page(opened):
    reader = opened(f"practice.html#{MASK_DRILL}")
    assert reader.drill == MASK_DRILL
    reader.page.evaluate("() => { location.hash = '#masking-project-1'; }")
    reader.page.wait_for_selector("[data-drill='masking-project-1']")
    expect(reader.box.locator(".ap-notice")).to_be_hidden()


@needs_browser
@pytest.mark.parametrize("name", ["kqv-project-99", "nothing-1", "%E0%A4%A", "kqv-"])
def test_an_unknown_address_says_so_and_shows_another_drill(opened, name):
    reader = opened(f"practice.html#{name}")
    assert reader.drill in {drill.id for stem in STEMS for drill in drills_by_hand(stem)}
    expect(reader.box.locator(".ap-notice")).to_have_text(
        "No drill has this address, or none has it any more. Here is another one."
    )
    if name.startswith("kqv-"):
        assert reader.drill.startswith("kqv-")


@needs_browser
def test_the_name_of_a_chapter_chooses_it_for_this_visit(opened):
    reader = opened("practice.html#masking")
    assert all(reader.another().startswith("masking-") for _ in range(6))
    assert reader.record["without"] == []


@needs_browser
@pytest.mark.parametrize("page", ["practice.html", "chapter.html"])
def test_a_link_is_copied_that_leads_to_the_drill(opened, page):
    reader = opened(page, permissions=["clipboard-read", "clipboard-write"])
    shown = reader.drill
    reader.box.get_by_role("button", name="Copy link").click()
    expect(reader.box.locator(".ap-row [role=status]").first).to_have_text(
        re.compile("The link is copied|Its address: .*#" + re.escape(shown))
    )


# --- the record -----------------------------------------------------------------------------------

STORAGE_FORBIDDEN = """for (const what of ["getItem", "setItem"])
    Storage.prototype[what] = () => { throw new DOMException("no", "SecurityError"); };"""
STORAGE_FULL = """Storage.prototype.setItem = () => {
    throw new DOMException("no", "QuotaExceededError"); };"""


@needs_browser
@pytest.mark.parametrize(
    ("spoiled", "notice"),
    [
        (STORAGE_FORBIDDEN, "This browser keeps nothing for these pages"),
        (STORAGE_FULL, "The browser's storage is full"),
    ],
)
@pytest.mark.parametrize("page", ["practice.html#kqv", "chapter.html"])
def test_without_storage_practice_works_and_says_so(browser, folder, spoiled, notice, page):
    reader = DrillReader(browser, folder, "practice.html")
    reader.context.add_init_script(spoiled)
    reader.open(page)
    first = reader.drill
    reader.solve(DRILLS, line_right=False)
    expect(reader.box).to_contain_text(f"{notice}: what you do here counts until you leave.")
    for _ in range(3):  # and it is known until then
        assert reader.another() != first
        reader.solve(DRILLS)
    assert reader.another() == first
    reader.close()


@needs_browser
def test_a_record_is_saved_forgotten_and_added_again(opened, tmp_path):
    reader = opened("practice.html#kqv")
    reader.solve(DRILLS)
    reader.another()
    reader.solve(DRILLS, line_right=False)
    before = reader.record
    with reader.page.expect_download() as coming:
        reader.box.get_by_role("button", name="Save as a file").click()
    file = tmp_path / coming.value.suggested_filename
    coming.value.save_as(file)
    assert json.loads(file.read_text(encoding="utf-8")) == before
    reader.box.get_by_role("button", name="Forget all").click()
    assert reader.record["drills"] == {}
    assert reader.record["count"] == 0
    reader.page.reload()
    assert reader.record["drills"] == {}
    reader.box.locator("input[type=file]").set_input_files(file)
    expect(reader.box).to_contain_text("2 drills were taken over")
    assert reader.record["drills"] == before["drills"]


@needs_browser
def test_a_forgotten_record_can_be_restored(opened):
    reader = opened("practice.html#kqv")
    reader.solve(DRILLS)
    before = reader.record
    reader.box.get_by_role("button", name="Forget all").click()
    expect(reader.box.locator("summary")).to_contain_text("0 of 5 drills seen")
    reader.box.get_by_role("button", name="Undo").click()
    expect(reader.box.locator("summary")).to_contain_text("1 of 5 drills seen")
    assert reader.record == before


DRILL_RECORD = {"seen": 1, "row": 1, "turn": 1, "at": 1}
EMPTY_RECORD = {
    "kind": "attncourse practice",
    "version": 1,
    "count": 1,
    "without": [],
    "drills": {},
}


@needs_browser
@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[]",
        "null",
        json.dumps(EMPTY_RECORD | {"kind": "another"}),
        json.dumps(EMPTY_RECORD | {"version": 2}),
        json.dumps(EMPTY_RECORD | {"count": -1}),
        json.dumps(EMPTY_RECORD | {"drills": None}),
        json.dumps(EMPTY_RECORD | {"drills": {"kqv-project-1": DRILL_RECORD | {"row": "many"}}}),
        json.dumps(EMPTY_RECORD | {"drills": {"kqv-project-1": {}}}),
    ],
)
def test_a_file_of_another_kind_changes_nothing(opened, tmp_path, text):
    reader = opened("practice.html#kqv")
    reader.solve(DRILLS)
    before = reader.record
    file = tmp_path / "other.json"
    file.write_text(text, encoding="utf-8")
    reader.box.locator("input[type=file]").set_input_files(file)
    expect(reader.box).to_contain_text(
        "This file is no record that this page has saved: nothing was changed."
    )
    assert reader.record == before


@needs_browser
def test_of_two_records_of_a_drill_the_newer_one_is_kept(opened, tmp_path):
    reader = opened(f"practice.html#{MASK_DRILL}")
    reader.solve(DRILLS)
    page_record = reader.record["drills"][MASK_DRILL]
    older = DRILL_RECORD | {"at": page_record["at"] - 1, "row": 0}
    newer = DRILL_RECORD | {"at": page_record["at"] + 1, "row": 3}
    file = tmp_path / "record.json"
    for file_record, stays, brought in ((older, page_record, 0), (newer, newer, 1)):
        file.write_text(
            json.dumps(EMPTY_RECORD | {"drills": {MASK_DRILL: file_record}}), encoding="utf-8"
        )
        reader.box.locator("input[type=file]").set_input_files(file)
        expect(reader.box).to_contain_text(f"{brought} drills were taken over")
        stored = reader.record["drills"][MASK_DRILL]
        assert (stored["at"], stored["row"]) == (stays["at"], stays["row"])


@needs_browser
def test_two_tabs_keep_one_record(opened):
    reader = opened("practice.html#kqv")
    assert reader.drill
    second_page = reader.context.new_page()
    second_page.goto(
        f"{(reader.folder / 'book').as_uri()}/practice.html#masking", wait_until="load"
    )
    second_page.evaluate("() => attncourseKept.answered('masking-project-1', true)")
    reader.solve(DRILLS)
    assert len(reader.record["drills"]) == 2


# --- without scripts, on paper, without a file ----------------------------------------------------


@needs_browser
def test_without_scripts_three_folded_drills_are_shown(opened):
    reader = opened("chapter.html", java_script_enabled=False)
    drills = reader.box.locator(".ap-still-drill")
    assert drills.count() == drill_pages.STILL
    for drill in drills.all():
        expect(drill.locator("pre").first).to_be_visible()
        expect(drill.locator("details > pre").first).to_be_hidden()
        assert drill.locator(".ap-names li").count() == 4
        drill.locator("summary").click()
        expect(drill.locator("details > pre").first).to_be_visible()
    expect(reader.box.locator(".ap-answers")).to_be_hidden()
    reader.open("practice.html")
    expect(reader.box.locator("a")).to_have_count(2)
    assert "Here a browser that runs scripts" in reader.box.inner_text()


@needs_browser
def test_paper_has_three_drills_and_their_answers_at_the_end(opened):
    reader = opened("chapter.html")
    assert reader.drill
    reader.page.emulate_media(media="print")
    expect(reader.box.locator(".ap-stage")).to_be_hidden()
    expect(reader.box.locator(".ap-still-drill").nth(2)).to_be_visible()
    assert reader.box.locator("details:visible, button:visible").count() == 0
    answers = reader.box.locator(".ap-answers li")
    expect(answers).to_have_count(3)
    printed_drills = drill_pages.still_drills(DRILLS)
    for drill, answer in zip(printed_drills, answers.all_inner_texts(), strict=True):
        assert answer.startswith(f"Line {drill.line + 1}, {drill.name}:")


@needs_browser
@pytest.mark.parametrize("page", ["chapter.html", "practice.html"])
def test_drills_that_cannot_be_loaded_are_reported(browser, drilled, tmp_path, page):
    write_pages(tmp_path, drilled, STEMS)
    for file in (tmp_path / "_static" / "drills").iterdir():
        file.unlink()
    reader = DrillReader(browser, tmp_path, page)
    if page == "chapter.html":
        expect(reader.box.locator(".ap-still-drill").first).to_be_visible()
    else:
        expect(reader.box.locator(".ap-notice")).to_have_text(
            re.compile(r"The drills of chapter \d+ could not be loaded.")
        )
    reader.close()


# --- what is drawn --------------------------------------------------------------------------------


def soup(html: str) -> BeautifulSoup:
    return BeautifulSoup(html, "html.parser")


def texts(table) -> list[list[str]]:
    return [[cell.get_text() for cell in row.select("td")] for row in table.select("tr")]


def test_numbers_have_the_decimals_that_the_longest_needs():
    table = soup(markup.value_html([[1, -0.5], [0.25, 2]])).table
    assert texts(table) == [["1.00", "−0.50"], ["0.25", "2.00"]]
    assert texts(soup(markup.value_html([1, 2, 30])).table) == [["1", "2", "30"]]
    assert texts(soup(markup.value_html([0.12345, -0.5])).table) == [["0.12", "−0.50"]]
    assert texts(soup(markup.value_html([1e6, 1e-7, "nan", "-inf"])).table) == [
        ["1e+06", "1e−07", "nan", "−inf"]
    ]


def test_close_results_have_enough_decimals():
    assert markup.decimals_that_tell([[0.5, 1.0]], [[0.5, 2.0]]) == 2
    assert markup.decimals_that_tell([[0.1234, 1.0]], [[0.1231, 2.0]]) == 4
    assert markup.decimals_that_tell([0.123, "nan"], [0.124, 1.0]) == 3
    assert markup.decimals_that_tell({"raised": "ValueError"}, [1.0]) == 2
    assert markup.decimals_that_tell([[True]], [[False]]) == 2
    assert markup.decimals_that_tell([2.82843, 0.1], [2.82842, 0.1]) == 5
    assert markup.decimals_that_tell([1e-7, 0.5], [0, 0.6]) == 2  # a power of ten is one already
    assert markup.decimals_that_tell([0.12341, 1.0], [0.12342, 2.0]) == 4


def test_an_input_is_not_rounded_to_a_whole_number():
    """What is near a whole number, or near 0, is written with as many decimals as show it."""
    assert markup.decimals_of_input([[0.5, 1.25], [3, 4]]) == 2
    assert markup.decimals_of_input([0.9999, 0.5]) == 4
    assert markup.decimals_of_input([[0.002, 0.5]]) == 3
    assert markup.decimals_of_input([1e-7, 0.5]) == 2
    example = DrillExample("f(x)", "", [{"name": "x", "value": [0.002, 1.5]}], [1], [2])
    assert texts(soup(markup.example_html(example)).table) == [["0.002", "1.500"]]


def test_shapes_are_written_where_they_differ():
    """A row, and a matrix of one row, are drawn alike."""
    example = DrillExample("f(x)", "", [], [[1, 2]], [1, 2])
    labels = [p.get_text() for p in soup(markup.example_html(example)).select(".ap-pair p")]
    assert labels == ["gives (1, 2)", "should give (2,)"]
    alike = DrillExample("f(x)", "", [], [[1, 3]], [[1, 2]])
    labels = [p.get_text() for p in soup(markup.example_html(alike)).select(".ap-pair p")]
    assert labels == ["gives", "should give"]


def test_larger_cells_are_darker_different_ones_underlined():
    table = soup(markup.value_html([[4, -2], [0, 1]], "query", [[4, 2], [0, 3]])).table
    assert "ap-query" in table["class"]
    shades = [cell.get("style", "") for cell in table.select("td")]
    assert shades == ["--much:1.0", "--much:0.5", "", "--much:0.2"]
    assert [u.get_text() for u in table.select("u")] == ["−2", "1"]
    assert not soup(markup.value_html([[4, -2]], "", [[4], [2]])).select("u")  # another shape


def test_maps_of_weights_are_recognised_and_shaded():
    assert markup.is_map([[0.5, 0.5], [0.0, 1.0], [0, 0]])
    for no_map in (
        [[0.5, 0.4]],
        [[1.5, -0.5]],
        [[0, 0]],
        [0.5, 0.5],
        [[True, False]],
        {"text": ""},
    ):
        assert not markup.is_map(no_map), no_map
    example = DrillExample("f(x)", "", [], got=[[2, 3]], want=[[0.4, 0.6]])
    assert len(soup(markup.example_html(example)).select("div.ap-weight")) == 2


def test_a_mask_is_drawn_as_true_and_false():
    table = soup(markup.value_html([[True, False], [True, True]])).table
    assert texts(table) == [["T", "F"], ["T", "T"]]
    assert [cell["class"] for cell in table.select("td")].count(["ap-true"]) == 3


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"raised": "ValueError: a < b"}, "ValueError: a < b"),
        ({"shape": [2, 7, 3]}, "an array of shape (2, 7, 3)"),
        ({"changed": "x"}, "changes x in place"),
        ({"text": "<dict>"}, "<dict>"),
        (None, "None"),
        (True, "True"),
        (-0.5, "−0.5"),
        ("a < b", "'a < b'"),
        (["the", "dog"], "['the', 'dog']"),
        ([], "[]"),
        ([[1], [2, 3]], "[[1], [2, 3]]"),
    ],
)
def test_values_that_are_no_table_are_written_as_text(value, text):
    assert soup(markup.value_html(value)).get_text() == text


def test_several_matrices_and_results_stand_below_each_other():
    matrices = [[[1, 2]], [[3, 4]]]
    assert len(soup(markup.value_html(matrices)).select("table")) == 2
    assert len(soup(markup.value_html({"parts": [[1, 2], 3, [[True]]]})).select("table")) == 2


def test_a_value_of_four_axes_is_tables_in_groups():
    layers = [[[[1, 0], [0.5, 0.5]], [[1, 0], [0, 1]]], [[[1, 0], [1, 0]], [[1, 0], [0.25, 0.75]]]]
    shown = soup(markup.value_html(layers))
    groups = shown.select(".ap-stack > .ap-stack")
    assert [len(group.select("table")) for group in groups] == [2, 2]
    assert groups[1].select("td")[-1].get_text() == "0.75"


def test_a_difference_in_one_of_several_results_is_underlined():
    def named(numbers):
        return {"parts": [{"name": "weights", "value": numbers}, {"name": "bias", "value": [5, 6]}]}

    shown = soup(markup.value_html(named([[1, 2.0001]]), "gives", named([[1, 2.0004]]), 4))
    assert [u.get_text() for u in shown.select("u")] == ["2.0001"]
    assert markup.decimals_that_tell(named([[1, 2.0001]]), named([[1, 2.0004]])) == 4


def test_code_is_shown_as_it_is():
    for drill in DRILLS:
        shown = soup(markup.still_html(drill, markup.DrillLinks("", "")))
        rows = shown.select_one("pre").select(".ap-text")
        again = [" " * int(re.search(r"\d+", r["style"])[0]) + r.get_text() for r in rows]
        assert again == list(drill.code)


def test_lines_left_out_of_long_code_cannot_be_chosen():
    steps = [f"    step_{i} = query + {i}" for i in range(30)]
    code = ("def project(query, key):", *steps, "    return step_0")
    drill = replace(DRILLS[0], code=code, line=20, mended=("    step_19 = query",))
    shown = markup.packed(drill, markup.DrillLinks("", ""))
    rows = [soup(text).get_text() for _, text in shown["code"]]
    assert rows[shown["line"]] == code[20].strip()
    omitted_rows = [
        row for row in rows if row.startswith("#")
    ]  # the script makes no button of these
    assert omitted_rows
    assert sum(int(re.search(r"\d+", row)[0]) for row in omitted_rows) + len(rows) - len(
        omitted_rows
    ) == len(code)
    still = soup(markup.still_html(drill, markup.DrillLinks("", "")))
    assert f"Line {shown['line'] + 1}: " in still.get_text()
    answers = soup(markup.short_answers_html([drill]))
    assert f"Line {shown['line'] + 1}, " in answers.get_text()


def test_another_line_that_fixes_it_is_named_with_the_answer():
    drill = BY_ID[TWO_FIXES_DRILL]
    mended = drill.elsewhere[0].mended[0].strip()
    still = soup(markup.still_html(drill, markup.DrillLinks("", ""))).get_text()
    assert f"Line 8 may be mended instead:    {mended}" in still
    answers = soup(markup.short_answers_html([drill])).get_text()
    assert answers.endswith(f"or line 8: {mended}")
    assert markup.packed(drill, markup.DrillLinks("", ""))["elsewhere"][0][:2] == (7, 7)


def test_a_line_that_is_not_shown_is_not_named():
    steps = [f"    step_{i} = query + {i}" for i in range(60)]
    code = ("def project(query, key):", *steps, "    return step_0")
    others = MendElsewhere(1, 1, ("    step_0 = query",)), MendElsewhere(40, 41, ("    x = 1",))
    drill = replace(DRILLS[0], code=code, line=39, mended=("    step_38 = query",))
    shown = markup.packed(replace(drill, elsewhere=others), markup.DrillLinks("", ""))
    assert "elsewhere" in shown
    for first, last, _ in shown["elsewhere"]:
        rows = [soup(text).get_text() for _, text in shown["code"][first : last + 1]]
        assert rows == ["step_39 = query + 39", "step_40 = query + 40"]


def test_drills_shown_without_scripts_are_of_three_exercises():
    page_drills = drill_pages.still_drills(DRILLS)
    assert len({drill.exercise for drill in page_drills}) == len({d.exercise for d in DRILLS}) == 3
    assert drill_pages.still_drills(DRILLS) == page_drills
    assert len(drill_pages.still_drills(DRILLS[:2])) == 2


def test_a_course_without_drills_says_so(drilled, monkeypatch):
    monkeypatch.setattr(drill_links, "drills_of", lambda stem: ())
    without = replace(drilled, title="without drills")
    assert "There are no drills yet." in drill_pages.practice_html(without, {})
    assert drill_links.entry_links(without, DRILLS[0].guide) == ""


def test_an_entry_of_the_field_guide_leads_to_its_drills(drilled):
    links = soup(drill_links.entry_links(drilled, BY_ID[MASK_DRILL].guide)).select("a")
    assert [link["href"] for link in links] == [f"practice.html#{MASK_DRILL}"]
    assert drill_links.entry_links(drilled, "another-entry") == ""


def test_a_drills_text_cannot_close_its_script(drilled):
    wicked = replace(DRILLS[0], sentence="</script><b>", name="<i>`<u>`", code=("x = '</script>'",))
    script = drill_pages.script_of(drilled, "kqv", [replace(wicked, line=0)])
    data = json.loads(script.removeprefix('attncourseDrills("kqv",').removesuffix(");\n"))
    assert "<b>" not in data[0]["says"]
    assert "<i>" not in data[0]["name"]
    assert "<u>" not in data[0]["name"]
    assert "</script" not in data[0]["code"][0][1]
