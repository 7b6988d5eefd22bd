"""The cache of chapter 20: pages have one owner, hold its tokens, and nobody jumps the queue."""

from __future__ import annotations

import pytest
from bs4 import BeautifulSoup

from attncourse.figures import moving
from attncourse.figures.moving.cache_pages import MEMORY_LAYOUTS, a_day, simulated
from helpers.figure_reader import FigureReader, needs_browser

MEMORY_SIZES = {"rows": 3, "longest": 28, "page": 4, "common": 9}
N_STEPS = 90
QUESTIONS = [(2 * i // 3, 9 + 5 * i % 7, 1 + 11 * i % 13) for i in range(50)]


def figure(**changed):
    return moving.cache_pages(
        QUESTIONS, **({"step": 40, "steps": N_STEPS} | MEMORY_SIZES | changed)
    )


def test_two_questions_are_served_as_worked_out_by_hand():
    """Four pages of 2 tokens; the first asks 2 and gets 3 tokens, the second asks 3 and gets 4."""
    questions = [(0, 2, 3), (1, 3, 4)]
    states = simulated(questions, "pages", rows=1, longest=8, page=2, common=0, steps=9)
    assert [day["held"] for day in states] == [
        [(0, [0, 1], 2)],  # room for its next token as well
        [(0, [0, 1], 3), (1, [2, 3], 3)],
        [(0, [0, 1], 4), (1, [2, 3], 4)],
        # The first needs a third page, so the second goes back, with what it has; at the next
        # step the first is done and leaves.
        [(0, [0, 1, 2], 5)],
        [(1, [0, 1, 2], 4)],
        [(1, [0, 1, 2], 5)],
        [(1, [0, 1, 2], 6)],
        [(1, [0, 1, 2, 3], 7)],
        [],
    ]
    assert [day["waiting"] for day in states] == [[]] * 3 + [[1]] + [[]] * 5
    reserved = simulated(questions, "reserved", rows=1, longest=8, page=2, common=0, steps=5)
    assert [(len(day["held"]), day["waiting"]) for day in reserved] == [(1, [])] + [
        (1, [1])
    ] * 3 + [(1, [])]


@pytest.mark.parametrize("way", MEMORY_LAYOUTS)
def test_a_page_has_one_owner_and_holds_its_tokens(way):
    shared = set(range(2)) if way == "shared" else set()
    most = 0
    for day in simulated(QUESTIONS, way, **MEMORY_SIZES, steps=N_STEPS):
        owned_pages = [at for _, pages, _ in day["held"] for at in pages if at not in shared]
        assert len(owned_pages) == len(set(owned_pages))
        assert set(owned_pages) <= set(range(21)) - shared
        for number, pages, tokens in day["held"]:
            _, asks, answers = QUESTIONS[number]
            assert asks <= tokens <= asks + answers
            assert len(pages) == 7 if way == "reserved" else 4 * len(pages) >= tokens
            assert shared <= set(pages)
        assert day["waiting"] == sorted(day["waiting"])
        assert all(w > max(n for n, *_ in day["held"]) for w in day["waiting"])
        most = max(most, len(day["held"]))
    assert most == 3 if way == "reserved" else most > 3


def test_everybody_is_answered_in_the_end_and_sooner_in_pages():
    ends = {}
    for way in MEMORY_LAYOUTS:
        days = simulated(QUESTIONS, way, **MEMORY_SIZES, steps=400)
        assert {n for day in days for n, *_ in day["held"]} == set(range(len(QUESTIONS)))
        ends[way] = max(i for i, day in enumerate(days) if day["held"])
        assert ends[way] < 399
        assert days[-1]["waiting"] == []
    assert ends["reserved"] > ends["pages"] > ends["shared"]


def test_on_the_pages_day_each_way_of_storing_helps():
    """The figure's first state is as the page describes it."""
    day = a_day()
    waits = {
        w: [len(d["waiting"]) for d in simulated(day, w, 9, 512, 16, 96, 300)]
        for w in MEMORY_LAYOUTS
    }
    assert waits["reserved"][180] > 5 * waits["pages"][180] > waits["shared"][180] == 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"way": "free"}, "way: expected one of reserved, pages, shared, got 'free'"),
        ({"page": 5}, "page: expected a divisor of 28, got 5"),
        ({"rows": 0}, "rows"),
        (
            {"step": N_STEPS},
            f"step: expected a whole number from 0 to {N_STEPS - 1}, got {N_STEPS}",
        ),
        ({"common": 10}, "at least 10 tokens"),
        ({"longest": 24}, "of at most 24 tokens, got"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        figure(**changed)


def test_equal_arguments_equal_bytes():
    assert figure()._repr_html_() == figure()._repr_html_()


@needs_browser
@pytest.mark.parametrize("way", MEMORY_LAYOUTS)
def test_the_script_simulates_the_same_day(opened, way):
    reader = opened(figure())
    simulated_states = reader.compute(QUESTIONS, way, MEMORY_SIZES, N_STEPS)
    expected = simulated(QUESTIONS, way, **MEMORY_SIZES, steps=N_STEPS)
    assert any(day["waiting"] for day in expected)
    for state, expected_state in zip(simulated_states, expected, strict=True):
        assert state["waiting"] == expected_state["waiting"]
        assert [tuple(held) for held in state["held"]] == expected_state["held"]


def drawn_elements(html: str) -> list[tuple]:
    """Return the memory's rectangles and the curves' paths, with what they look like."""
    soup = BeautifulSoup(html, "html.parser")
    rects = soup.select("[data-part=field] rect")
    return [
        (
            *element["class"],
            element.get("style", ""),
            *(round(float(element[k]), 1) for k in ("x", "y", "height")),
        )
        for element in rects
    ] + [(element["class"], element["d"]) for element in soup.select("[data-part=curves] path")]


@needs_browser
def test_first_state_and_script_say_and_draw_the_same(opened):
    for way in MEMORY_LAYOUTS:
        made = figure(way=way)
        reader = opened(made)
        assert reader.says == made.says
        drawn = drawn_elements(reader.figure.locator(".am-stage").inner_html())
        assert len(drawn) > 21 + 3
        assert drawn == drawn_elements(made.body)


@needs_browser
def test_steps_are_chosen_by_keyboard_and_mouse(opened):
    reader = opened(figure())
    for i, way in enumerate(MEMORY_LAYOUTS):
        if i:
            reader.page.keyboard.press("ArrowRight")
        else:
            reader.figure.locator("[data-part=way]").first.focus()
        assert reader.now["way"] == way
        day = simulated(QUESTIONS, way, **MEMORY_SIZES, steps=N_STEPS)[40]
        shared = 8 * (len(day["held"]) - 1) if way == "shared" else 0
        tokens = sum(tokens for *_, tokens in day["held"]) - shared
        assert reader.now["tokens"] == tokens
        held, waiting = len(day["held"]), len(day["waiting"])
        assert f"Being answered: {held}, waiting: {waiting}" in reader.says
        assert f"fill {100 * tokens / 84:.0f}\u00a0% of the room" in reader.says
    reader.figure.locator("[data-part=who]").focus()
    reader.page.keyboard.press("Home")
    first = reader.now["held"][0]
    assert reader.now["chosen"] == first[0]
    assert f"Question {first[0] + 1}: {first[2]} tokens" in reader.says
    last = reader.now["held"][-1]
    cell = reader.figure.locator("[data-part=field] rect:not(.cp-full)").nth(last[1][-1])
    box = cell.bounding_box()
    reader.page.mouse.click(box["x"] + 3, box["y"] + 3)
    assert reader.now["chosen"] == last[0]
    reader.figure.locator("[data-part=step]").focus()
    reader.page.keyboard.press("ArrowLeft")
    assert reader.now["step"] == 39
    reader.page.keyboard.press("Home")
    assert reader.now["step"] == 0


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_figure_and_controls_at_once(opened, scheme):
    reader = opened(moving.cache_pages(a_day()), width=390, color_scheme=scheme)
    for i in range(3):
        reader.figure.locator("[data-part=way]").nth(i).click()
        assert reader.overflow() <= 0
        assert reader.small_text() == []
        assert reader.figure.bounding_box()["height"] <= 560


@needs_browser
def test_without_scripts_it_says_what_would_move(browser):
    reader = FigureReader(browser, figure(), java_script_enabled=False)
    assert "In a browser that runs scripts" in reader.figure.inner_text()
    reader.close()
