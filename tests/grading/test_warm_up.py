"""The warm-up page for the next lecture has frequent mistakes as drills, without names."""

import re
from dataclasses import replace

import pytest

from attncourse.grading.errors import UserError
from attncourse.grading.results import warm_up
from attncourse.grading.results.class_results import class_results
from attncourse.grading.results.summary import Summary
from attncourse.grading.results.warm_up import (
    MAX_DRILLS,
    MIN_STUDENTS,
    frequent_mistakes,
    write_warm_up,
)
from attncourse.practice.drills import MendElsewhere, drills_of
from helpers.small_class import make_report, mistake_fields, refuses, run, write_reports

KQV = drills_of("kqv")
KINDS = list({(d.exercise, d.name): d for d in KQV}.values())
NAME = "01_small"


def reports_with_mistakes(**counts: int):
    """Return a class in which the mistake of drill 0 was made seven times: ``d0=7``."""
    students = []
    for key, number in counts.items():
        drill = KINDS[int(key[1:])]
        for i in range(number):
            fields = mistake_fields(drill.exercise, drill.name, drill.sentence)
            students.append(make_report(f"secret{key}x{i}", 0, 0, 0, **fields))
    return students


@pytest.fixture
def course(tmp_path):
    return tmp_path


def summary_of(course):
    return Summary(class_results(course, NAME, None, gradebook=False))


def test_the_page_counts_mistakes_without_names(course):
    write_reports(course, reports_with_mistakes(d0=12, d1=MIN_STUDENTS, d2=MIN_STUDENTS - 1))
    page = write_warm_up(course, summary_of(course)).path.read_text(encoding="utf-8")
    handed_in = 12 + 2 * MIN_STUDENTS - 1
    assert f"12 of {handed_in} did this" in page
    assert f"{MIN_STUDENTS} of {handed_in} did this" in page
    assert "secret" not in page
    assert page.count("<section>") == 2
    for kind in KINDS[:2]:  # of several drills of a kind the page has one
        drills_of_kind = [
            drill for drill in drills_of(kind.exercise.partition(".")[0]) if drill.name == kind.name
        ]
        assert any(f"Line {drill.line + 1}" in page for drill in drills_of_kind)
    assert f"{MIN_STUDENTS - 1} of" not in page


def test_another_line_to_mend_is_shown_with_the_answer(course, monkeypatch):
    last = len(KINDS[0].code) - 1
    other_line = MendElsewhere(last, last, ("    return what_mends_it",))
    drill = replace(KINDS[0], line=0, elsewhere=(other_line,))
    monkeypatch.setattr(warm_up, "drill_of", lambda *kind: drill)
    write_reports(course, reports_with_mistakes(d0=MIN_STUDENTS))
    page = write_warm_up(course, summary_of(course)).path.read_text(encoding="utf-8")
    assert f"Line {last + 1} may be mended instead:" in page
    assert "return what_mends_it" in page


def test_a_student_with_a_mistake_twice_counts_once(course):
    drill = KINDS[0]
    fields = mistake_fields(drill.exercise, drill.name)
    fields["mistakes"] = fields["mistakes"] * 2
    write_reports(
        course, [make_report(f"s{i}", 0, 0, 0, **fields) for i in range(MIN_STUDENTS - 1)]
    )
    assert not frequent_mistakes(summary_of(course))


def test_the_page_has_at_most_max_drills(course):
    counts = {f"d{i}": MIN_STUDENTS for i in range(min(MAX_DRILLS + 2, len(KINDS)))}
    write_reports(course, reports_with_mistakes(**counts))
    assert write_warm_up(course, summary_of(course)).drills == MAX_DRILLS


def test_the_pages_code_is_the_drills(course):
    """The page's code is the drill's: reports hold no code of students."""
    write_reports(course, reports_with_mistakes(d0=MIN_STUDENTS))
    page = write_warm_up(course, summary_of(course)).path.read_text(encoding="utf-8")
    shown = re.sub(r"&(gt|lt|amp|#34|#39);", lambda m: {"gt": ">", "lt": "<", "amp": "&",
                   "#34": '"', "#39": "'"}[m[1]], page)  # fmt: skip
    assert all(line in shown for line in KINDS[0].code)
    assert "`" not in page  # what a check says of code is set as code


def test_rare_mistakes_make_no_page(course):
    write_reports(course, reports_with_mistakes(d0=MIN_STUDENTS - 1, d1=2))
    refuses(run("report", NAME, "--warm-up", cwd=course), "in 5 submissions or more", "no warm-up")
    assert not list(course.rglob("warm_up.html"))


def test_a_frequent_mistake_without_a_drill_is_named(course):
    fields = mistake_fields("kqv.project", "a mistake of nobody")
    write_reports(
        course,
        [
            *reports_with_mistakes(d0=MIN_STUDENTS),
            *(make_report(f"o{i}", 0, 0, 0, **fields) for i in range(6)),
        ],
    )
    process = run("report", NAME, "--warm-up", cwd=course)
    assert process.returncode == 0, process
    assert "frequent, and without a drill: a mistake of nobody" in process.stderr
    assert "warm_up.html, 1 drill" in process.stdout


def test_without_any_drill_no_page_is_written(course):
    fields = mistake_fields("kqv.project", "a mistake of nobody")
    write_reports(course, [make_report(f"o{i}", 0, 0, 0, **fields) for i in range(6)])
    with pytest.raises(UserError, match="no drill of what was frequent: a mistake of nobody"):
        write_warm_up(course, summary_of(course))


def test_a_variant_has_no_drills(course):
    write_reports(course, reports_with_mistakes(d0=MIN_STUDENTS))
    summary = summary_of(course)
    summary.results = replace(summary.results, variant="columns")
    with pytest.raises(UserError, match="in the variant columns"):
        write_warm_up(course, summary)
