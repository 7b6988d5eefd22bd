"""The syllabus: weeks that can be taught, and sums of what the chapters say of themselves."""

import re

import pytest
import syllabus
from bs4 import BeautifulSoup
from course import CourseError, load
from navigation import line, needs

from attncourse import STEMS, milestones
from helpers.project import ROOT

COURSE = load(ROOT)
PLANS = re.findall(
    r"(?s)```\{syllabus\}\n(.*?)```", (ROOT / "book" / "syllabus.md").read_text(encoding="utf-8")
)


@pytest.mark.parametrize(("plan", "last"), list(zip(PLANS, (18, 13), strict=True)))
def test_no_week_comes_before_what_it_builds_on(plan, last):
    weeks, above, seen = syllabus.weeks(COURSE, plan.splitlines()), needs(COURSE), set()
    assert [week.number for week in weeks] == list(range(1, len(weeks) + 1))
    for week in weeks:
        for chapter in week.chapters:
            beside = () if week.choose else {c.stem for c in week.chapters}
            assert set(above[chapter.stem]) <= seen | set(beside)
        seen |= {chapter.stem for chapter in week.chapters}
    assert seen == set(STEMS[:last])


def test_a_row_adds_up_what_its_chapters_say():
    weeks = syllabus.weeks(COURSE, ["1: 4 5", "2: 6 7, one of them"])
    titles = {stem: f"{stem}: and more" for stem in STEMS}
    html = syllabus.table(COURSE, weeks, titles, dict.fromkeys(STEMS, "there.html"))
    first, second = BeautifulSoup(html, "html.parser").select("tbody tr")
    four, five, six, seven = (line(ROOT, COURSE.chapters[n]) for n in (3, 4, 5, 6))
    assert f"about {four.reading + five.reading} minutes" in first.get_text()
    assert (
        f"about {four.doing + five.doing} minutes, {four.points + five.points:g} points"
        in first.get_text()
    )
    low, high = sorted((six.doing, seven.doing))
    assert f"about {low} to {high} minutes" in second.get_text()
    assert " or " in second.get_text()
    assert "<br>" not in str(second.a)
    recall = milestones.find_milestone("recall")
    assert recall.after == "kqv"
    assert recall.what in first.get_text()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1: 1", "2: 40"], "week 2: there is no chapter 40"),
        (["1: 1 2", "2: 2"], "week 2: chapter 2 was there before"),
        (["first: 1"], "not “first: 1”"),
        (["1:"], "not “1:”"),
    ],
)
def test_a_faulty_syllabus_is_refused_in_one_line(lines, message):
    with pytest.raises(CourseError, match=re.escape(message)):
        syllabus.weeks(COURSE, lines)
