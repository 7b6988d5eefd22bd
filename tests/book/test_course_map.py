"""The map on the first page: every chapter once, in its part, and few branches."""

import course as settings
import navigation
import pytest
from bs4 import BeautifulSoup
from course import Chapter

from helpers.project import ROOT

COURSE = settings.load(ROOT)
TITLES = {chapter.stem: f"The title <of> {chapter.stem}" for chapter in COURSE.chapters}
LINKS = {chapter.stem: f"{chapter.page}.html" for chapter in COURSE.chapters}


@pytest.fixture(scope="module")
def drawn() -> BeautifulSoup:
    return BeautifulSoup(navigation.course_map(COURSE, TITLES, LINKS), "html.parser")


def test_every_chapter_is_on_the_map_once_in_order(drawn):
    assert [a["href"] for a in drawn.select("a")] == list(LINKS.values())
    for a, chapter in zip(drawn.select("a"), COURSE.chapters, strict=True):
        assert a.get_text() == f"{chapter.number}. {TITLES[chapter.stem]}"
        assert "minutes to read" in a.find_next("small").get_text()


def test_chapters_stand_under_their_parts(drawn):
    shown = [part.get_text() for part in drawn.select(".attn-part")]
    assert shown == [caption for caption, _ in navigation.parts(COURSE)]
    assert len(shown) >= 5
    assert all(part.startswith("Part ") for part in shown)
    first = drawn.select_one(".attn-map > li")
    assert len(first.select("a")) == 4


def test_side_chapters_branch_off_at_the_end_of_a_part(drawn):
    off = [a["href"].partition("_")[2] for a in drawn.select(".attn-off a")]
    needed = {stem for stems in navigation.needs(COURSE).values() for stem in stems}
    assert {"vision.html", "sequences.html", "efficient.html"} <= set(off)
    assert not {name.removesuffix(".html") for name in off} & needed
    assert len(drawn.select(".attn-off")) <= 2


def test_a_single_end_is_not_drawn_as_a_branch():
    chapters = [Chapter(i + 1, stem) for i, stem in enumerate("abcd")]
    above = {"a": (), "b": ("a",), "c": ("b",), "d": ("b",)}
    assert navigation.branches(chapters, above) == chapters[2:]
    assert navigation.branches(chapters[:3], {"b": ("a",), "c": ("b",)}) == []
    assert navigation.branches(chapters, {}) == []


def test_every_chapter_has_a_sign_of_its_own():
    signs = [navigation.CHAPTER_SIGNS[chapter.stem] for chapter in COURSE.chapters]
    assert len(set(signs)) == len(signs)
    for sign in signs:
        assert [len(row) for row in sign.split()] == [5] * 5
    assert navigation.picture("unheard_of") == ""
