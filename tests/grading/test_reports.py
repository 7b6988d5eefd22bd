"""Reports keep to their format, and a class's summary and page are made of them."""

import io
import itertools
import json
import math
import re
import statistics
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import jsonschema
import pytest
import report_format as schema
from chromium import ABSENT, BROWSER, FLAGS
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from attncourse.checks import examine
from attncourse.checks.showing.verdict import NOT_ATTEMPTED
from attncourse.grading.course.changes import changes_of_cells
from attncourse.grading.gradebook.read import Person
from attncourse.grading.harmless import one_line
from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.judge.outcomes import describe_verdict
from attncourse.grading.report import (
    SCHEMA,
    CellResult,
    Report,
    ReportedCriterion,
    ReportedVerdict,
    count,
    report_from_json,
    to_json,
)
from attncourse.grading.results.class_results import (
    ClassResults,
    StudentResult,
    class_results,
    from_report,
    lateness_in_words,
)
from attncourse.grading.results.page import HERE, class_page
from attncourse.grading.results.summary import Summary, histogram, quartiles
from attncourse.grading.results.terminal import (
    MAX_COLUMN_WIDTH,
    MAX_LINE_WIDTH,
    at_a_glance,
    class_table,
    first_rows,
    own_verdicts,
    wide_console,
)
from attncourse.grading.submission.notebook import Assignment, read_cells
from helpers.project import ROOT
from helpers.small_class import (
    MAXIMA,
    NAME,
    make_report,
    mistake_fields,
    refuses,
    run,
    write_gradebook,
    write_reports,
)
from helpers.small_course import STUB, TESTS, notebook, small
from helpers.small_course import solution as answer

NOTHING_HANDED_IN = "nothing handed in"
SMALL_ASSIGNMENT = Assignment(NAME, read_cells(small()))
HOSTILE = (
    "<script>alert(1)</script>\"'><img src=//evil.example/x onerror=alert(1)>\x00\x1b[31m\u202e"
)


# --- the format of one report -----------------------------------------------------------------

SUBMISSIONS = {
    "right": small(),
    "half": small(twice=STUB),
    "torn": b'{"cells": [\n]',
    "tests deleted": notebook(answer("add", "def add(a, b):\n    return a + b")),
    "crash": small(twice="import os\nos.abort()"),
}


@pytest.mark.parametrize("name", SUBMISSIONS)
def test_real_reports_keep_to_the_schema(name):
    report = grade_submission(SUBMISSIONS[name], SMALL_ASSIGNMENT, student="ada")
    content = json.loads(json.dumps(to_json(report)))
    jsonschema.Draft202012Validator(schema.report_schema()).validate(content)
    assert report_from_json(content) == report


def test_the_schema_file_agrees_with_the_classes():
    """If this fails, run ``python tools/report_format.py --write``."""
    assert json.loads(schema.PATH.read_text("utf-8")) == schema.report_schema()


def test_a_reported_verdict_has_the_fields_of_its_class():
    verdict = examine("kqv.project", lambda x, w: 2 * x @ w)
    assert not verdict.passed
    fields = describe_verdict(verdict, "points_project")
    assert fields.keys() == ReportedVerdict.__annotations__.keys()
    for criterion in fields["criteria"]:
        assert criterion.keys() == ReportedCriterion.__annotations__.keys()


def test_the_schema_describes_every_field_and_refuses_others():
    report_schema = schema.report_schema()
    jsonschema.Draft202012Validator.check_schema(report_schema)
    content = json.loads(json.dumps(to_json(make_report("ada", 2, 1, 4))))
    assert report_schema["properties"]["schema"]["const"] == SCHEMA
    assert report_schema["$id"] == f"urn:attncourse:report:{SCHEMA}"
    assert set(report_schema["properties"]) == set(report_schema["required"]) == set(content)
    validator = jsonschema.Draft202012Validator(report_schema)
    assert validator.is_valid(content)
    for change in (
        {"status": "fine"},
        {"schema": SCHEMA + 1},
        {"cells": {"points_add": {"points": "2", "maximum": 2, "message": ""}}},
        {"mistakes": [["kqv.project"]]},
        {"grade": 1.0},
    ):
        assert not validator.is_valid({**content, **change})


def test_the_table_of_the_format_has_a_row_for_every_field():
    lines = schema.markdown().splitlines()
    assert all(line.count("|") == 4 for line in lines)
    for path in ("seed", "cells.NAME.points", "verdicts[].criteria[].message", "limits.NAME.used"):
        assert sum(line.startswith(f"| `{path}` |") for line in lines) == 1
    assert "| |" not in schema.markdown()


def test_one_point_is_written_in_the_singular():
    assert [count(n, "point") for n in (0, 0.5, 1, 1.0, 2)] == [
        "0 points",
        "0.5 points",
        "1 point",
        "1 point",
        "2 points",
    ]
    cells = {"small.add": CellResult(0, 1, NOT_ATTEMPTED), "small.twice": CellResult(0, 1, "no")}
    report = Report("ada", NAME, "graded", cells)
    texts = own_verdicts(replace(report, cells={**cells, "small.one": CellResult(1, 1)}))
    single = Report("ada", NAME, "graded", {"points_add": CellResult(1, 1)})
    summary = Summary(class_of_reports(single))
    texts += (
        own_verdicts(single) + render(at_a_glance(summary)) + class_page(summary) + summary.fullest
    )
    texts += lateness_in_words(60, 1) + " ".join(changes_of_cells({}, {"add": ("", 1.0)}))
    texts += " ".join(changes_of_cells({"add": ("", 1.0)}, {}))
    assert len(re.findall(r"\b1 point\b", texts)) > 8
    assert not re.search(r"\b1 points", texts)


# --- figures ----------------------------------------------------------------------------------


def class_of_reports(*reports: Report) -> ClassResults:
    results = [
        StudentResult(
            Person(r.student),
            NAME,
            r.status,
            dict(r.cells),
            mistakes=r.mistakes,
            notes=r.notes,
            attention=r.attention,
        )
        for r in reports
    ]
    return ClassResults(NAME, tuple(results))


@given(
    st.lists(st.integers(0, 40).map(lambda n: n / 2), min_size=1, max_size=40),
    st.sampled_from([1, 5, 7, 10, 11, 20, 26, 100, 7.5, 0.5]),
)
def test_every_score_is_in_one_bin(scores, maximum):
    scores = [min(score, maximum) for score in scores]
    bins = list(histogram(scores, maximum))
    assert sum(score_bin.count for score_bin in bins) == len(scores)
    assert len(bins) <= 11
    assert bins[0].low == 0
    assert all(a.low < score_bin.low for a, score_bin in itertools.pairwise(bins))
    for score_bin, next_bin in zip(bins, [*bins[1:], None], strict=True):
        upper = next_bin.low if next_bin else math.inf
        assert score_bin.count == sum(score_bin.low <= score < upper for score in scores)


@given(st.lists(st.integers(0, 100), min_size=1, max_size=30))
def test_quartiles_surround_the_median(scores):
    low, middle, high = quartiles(scores)
    assert middle == statistics.median(scores)
    assert min(scores) <= low <= middle <= high <= max(scores)


@pytest.mark.parametrize(
    ("waiting", "shown"), [(0, "50%"), (1, "33%"), (2, "0%"), (3, "–"), (4, "–")]
)
def test_an_exercise_has_shares_once_most_of_it_is_scored(waiting, shown):
    """Of four answers the first two are right; those not yet scored do not count."""
    results = [
        StudentResult(
            *(Person(str(n)), NAME, "graded", {"points_twice": CellResult(4 * (n < 2), 4)}),
            waiting=("points_twice",) if n < waiting else (),
        )
        for n in range(4)
    ]
    summary = Summary(ClassResults(NAME, tuple(results)))
    assert summary.exercises[0].shares[0] == shown
    assert re.search(rf"twice +4 +{shown} ", render(at_a_glance(summary)))
    assert f'<td class="number">{shown}</td>' in class_page(summary)


def failed_verdict(cell: str = "points_add", **changes) -> dict:
    """Return a verdict on a failure without a known mistake."""
    verdict = {"cell": cell, "target": "small.add", "mistake": "", "failed": ["sums"]}
    return verdict | {"symptom": "", "reason": "is 3, not 4", "unwritten": False} | changes


def test_failures_without_a_known_mistake_are_counted():
    lost_cells = {
        "points_add": CellResult(0, 2, "is 3"),
        "hidden_add": CellResult(0, 1, "a hidden test"),
    }
    failed_assertion = {"points_twice": CellResult(0, 4, "AssertionError: is 3, not 4\n> line 2")}
    failed_hidden_test = {
        "points_add": CellResult(2, 2),
        "hidden_add": CellResult(0, 1, "a hidden test failed"),
    }
    reports = [
        Report("ada", NAME, "graded", lost_cells, verdicts=(failed_verdict(),)),
        Report(
            "bob", NAME, "graded", lost_cells, verdicts=(failed_verdict(reason="is 7, not 8"),) * 2
        ),
        Report("cy", NAME, "graded", lost_cells, verdicts=(failed_verdict(symptom="transposed"),)),
        Report("dot", NAME, "graded", lost_cells, verdicts=(failed_verdict(unwritten=True),)),
        Report("eve", NAME, "graded", failed_assertion),
        Report("fay", NAME, "graded", failed_hidden_test),
        Report("gus", NAME, "graded", lost_cells, **mistake_fields("small.add", "adds twice")),
        Report("hal", NAME, "unreadable", failed_assertion),
        Report(
            "ida", NAME, "graded", lost_cells, verdicts=(failed_verdict("hidden_add", failed=[]),)
        ),
    ]
    results = [from_report(Person(r.student), NAME, r) for r in reports]
    summary = Summary(ClassResults(NAME, tuple(results)))
    failures = [(m.exercise, m.name, m.students) for m in summary.failures]
    assert failures == [
        ("add", "fails at: sums", 2),
        ("add", "a hidden test failed", 1),
        ("add", "is 3", 1),
        ("add", "not attempted", 1),
        ("add", "transposed", 1),
        ("twice", "AssertionError: is 3, not 4", 1),
    ]
    assert summary.failures[0].explanation == "is 3, not 4"
    text = render(at_a_glance(summary))
    assert "failures without a name" in text
    assert " add: transposed" in text
    assert "Failures without a name</h2>" in class_page(summary)


def render(renderable, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    console.print(renderable, crop=False)
    return console.file.getvalue()


LONG_NAME = "scaled_dot_product_attention"


def test_a_class_table_has_a_line_for_each_finding():
    named = mistake_fields(f"kqv.{LONG_NAME}", "masked after the softmax, not renormalised")
    words = " ".join(["scores"] * 30)
    notes = (f"{LONG_NAME}: {words} end", "two\nlines")
    reports = [
        make_report("a-student-with-a-rather-long-name-" * 2, 2, 1, 4),
        make_report("bob", 0, 0, 4, notes=notes, **named),
        make_report("cy", 0, 0, 0, notes=tuple(f"note {n}" for n in range(9))),
    ]
    lines = [line.rstrip() for line in render(class_table(reports, 80)).rstrip().splitlines()]
    assert lines[2] == f" {reports[0].student}   7 / 7"
    assert lines[3].split() == ["bob", "4", "/", "7"]
    assert lines[4] == f"   {LONG_NAME}: masked after the softmax, not renormalised"
    assert lines[5].startswith(f"   {LONG_NAME}: scores")
    assert lines[5].endswith(" scores …")
    assert len(lines[5]) <= 80
    assert lines[6] == "   two lines"
    assert lines[8:] == [*(f"   note {n}" for n in range(5)), "   and 4 more"]
    wide = render(class_table(reports, MAX_LINE_WIDTH), MAX_LINE_WIDTH).splitlines()
    assert f"   {notes[0]}" in [line.rstrip() for line in wide]


def test_lines_wrap_in_a_terminal_and_not_in_a_pipe(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert wide_console().width == MAX_LINE_WIDTH
    monkeypatch.setenv("COLUMNS", "97")
    assert wide_console().width == 97


def test_class_figures_agree_with_figures_by_hand():
    summary = Summary(
        class_of_reports(
            make_report("ada", 2, 1, 4, **mistake_fields("small.add", "adds twice")),
            make_report("bob", 2, 0, 4, **mistake_fields("small.add", "adds twice")),
            make_report("cy", 0, 0, 0, status="unreadable", notes=("unreadable notebook: line 2",)),
            make_report(
                "dot", 2, 1, 0, status="interrupted", **mistake_fields("small.twice", "squares")
            ),
            make_report("eve", status="missing"),
        )
    )
    assert summary.counts == {"graded": 2, "interrupted": 1, "unreadable": 1, "missing": 1}
    assert (summary.handed_in, summary.maximum) == (4, 7)
    assert summary.mean == (7 + 6 + 0 + 3) / 4
    assert summary.quartiles == (2.25, 4.5, 6.25)
    assert [b.count for b in summary.bins] == [1, 0, 0, 1, 0, 0, 1, 1]
    add, twice = summary.exercises
    assert (add.name, add.points, add.full, add.zero) == ("add", 3, 0.5, 0.25)
    assert add.mean == pytest.approx((1 + 2 / 3 + 0 + 1) / 4)
    assert (twice.name, twice.mean, twice.full, twice.zero) == ("twice", 0.5, 0.5, 0.5)
    assert [(m.name, m.students) for m in summary.mistakes] == [
        ("adds twice", 2),
        ("squares", 1),
    ]
    assert [r.student for r in summary.attention] == ["cy", "dot"]


def test_scores_come_from_the_gradebook_before_reports(tmp_path):
    reports = [
        make_report("ada", 2, 1, 4, **mistake_fields("small.add", "adds twice", "Add once.")),
        make_report("bob", 0, 0, 4, attention=("missing tests were put back: points_add",)),
        make_report("cy", 2, 1, 4, attention=("prints the seed",), sandbox=False),
    ]
    write_reports(tmp_path, [*reports, make_report("only-here", 1, 0, 0)])
    (tmp_path / "submitted" / "only-here").mkdir(parents=True)  # or the student has left
    manual_scores = {("bob", "points_add"): 1.5}
    write_gradebook(tmp_path, reports, manual=manual_scores, late={"cy": 2.0, "ada": 99.0})
    class_of_course = class_results(tmp_path, NAME)
    by_name = {r.student: r for r in class_of_course.results}
    assert {s: r.score for s, r in by_name.items()} == {
        "ada": 0,  # a penalty takes no more than there is
        "bob": 5.5,
        "cy": 5,
        "only-here": 1,
    }
    assert by_name["bob"].manual == ("points_add",)
    assert by_name["only-here"].source == "report"
    assert list(by_name["ada"].cells) == list(MAXIMA)
    assert class_of_course.explanations == {("small.add", "adds twice"): "Add once."}
    attention_by_student = {r.student: r.attention for r in class_of_course.results if r.attention}
    assert attention_by_student["bob"] == ("missing tests were put back: points_add",)
    assert by_name["bob"].older == "scored by a person before it was graded again: points_add"
    sentence = (
        "Was scored by a person before it was graded again, and may be another answer now: "
        "points_add of 1 student."
    )
    assert sentence in " ".join(render(at_a_glance(Summary(class_of_course)), 200).split())
    assert sentence in class_page(Summary(class_of_course))
    assert attention_by_student["cy"] == ("prints the seed", "graded without a sandbox")
    assert "1 submission that it does not have" in Summary(class_of_course).sources


@pytest.mark.parametrize(
    "damage",
    [
        *({"schema": 1}, {"cells": 3}, {"more": 1}, {"notes": [1]}, {"mistakes": [[1, 2]]}),
        *({"verdicts": [{}]}, {"cells": {"points_add": {"points": "2", "maximum": 2}}}, [], "torn"),
    ],
)
def test_a_damaged_report_loses_only_its_details(tmp_path, damage):
    reports = [make_report("ada", 2, 1, 4), make_report("bob", 2, 0, 0)]
    write_gradebook(write_reports(tmp_path, reports), reports)
    path = tmp_path / "reports" / NAME / "ada.json"
    content = {**to_json(reports[0]), **damage} if isinstance(damage, dict) else damage
    path.write_text("{" if damage == "torn" else json.dumps(content))
    results = class_results(tmp_path, NAME).results
    assert [(r.student, r.score) for r in results] == [("ada", 7), ("bob", 2)]
    assert f"its report cannot be read: reports/{NAME}/ada.json: " in results[0].attention[0]
    assert render(at_a_glance(Summary(class_results(tmp_path, NAME))), 200)


def test_submissions_with_restored_tests_need_attention():
    cells_without_test = [cell for cell in TESTS if cell["id"] != "points_add"]
    answers = [answer("add", "def add(a, b):\n    return a + b"), answer("twice", STUB)]
    report = grade_submission(
        notebook(*answers, *cells_without_test), SMALL_ASSIGNMENT, student="ada"
    )
    from attncourse.grading.results.class_results import from_report

    result = from_report(Person("ada"), NAME, report)
    assert any("put back" in reason for reason in result.attention)
    assert not any("not attempted" in reason for reason in result.attention)


# --- the command ------------------------------------------------------------------------------


def test_report_shows_the_class_and_writes_the_page(tmp_path):
    reports = [
        make_report("ada", 2, 1, 4),
        make_report("bob", 1, 0, 0, **mistake_fields("small.add", "adds twice", "Add once.")),
        make_report("cy", status="unreadable", notes=("unreadable notebook: line 2",)),
        make_report(
            "dot", status="missing", notes=(NOTHING_HANDED_IN,), attention=(NOTHING_HANDED_IN,)
        ),
        make_report("eve", status="missing", attention=("several notebooks",)),
    ]
    write_gradebook(write_reports(tmp_path, reports), reports)
    process = run("report", NAME, cwd=tmp_path)
    assert (process.returncode, process.stderr) == (0, "")
    for sentence in (
        "3 of 5 students handed in, 2 missing, 1 unreadable",
        "mean 2.667, median 1",
        " add: adds twice",
        "Add once.",
        "unreadable notebook: line 2",
        "from the gradebook",
        "to look at (2)",
        "several notebooks",
    ):
        assert sentence in process.stdout
    assert (tmp_path / "reports" / NAME / "index.html").is_file()
    assert run("report", NAME, "--html", "elsewhere.html", cwd=tmp_path).returncode == 0
    assert (tmp_path / "elsewhere.html").is_file()


def test_report_without_a_gradebook_says_so(tmp_path):
    write_reports(tmp_path, [make_report("ada", 2, 1, 4)])
    process = run("report", NAME, cwd=tmp_path)
    assert process.returncode == 0
    assert "Points are from the reports" in process.stdout
    assert not (tmp_path / "gradebook.db").exists()


def test_report_refuses_in_one_line(tmp_path):
    (tmp_path / "solutions" / NAME).mkdir(parents=True)
    refuses(run("report", "01_smal", cwd=tmp_path), "did you mean 01_small?")
    refuses(run("report", NAME, cwd=tmp_path), f"attncourse grade {NAME}")
    write_reports(tmp_path, [make_report("ada", 2, 1, 4)])
    (tmp_path / "file").write_text("")
    process = run("report", NAME, "--html", "file/page.html", cwd=tmp_path)
    assert process.returncode == 2
    assert "cannot write file/page.html" in process.stderr
    (tmp_path / "gradebook.db").write_text("not a database, but long enough to look at" * 40)
    refuses(run("report", NAME, cwd=tmp_path), "cannot read gradebook.db")


def test_texts_of_submissions_cannot_steer_a_terminal():
    from rich.console import Console

    report = make_report(
        "ada" + HOSTILE, 1, 0, 0, attention=(HOSTILE,), **mistake_fields("small.add", HOSTILE)
    )
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(at_a_glance(Summary(class_of_reports(report))))
    shown = console.export_text()
    assert not set(shown) & {"\x00", "\x1b", "\u202e"}


@given(st.text(), st.integers(2, 50))
def test_one_line_returns_one_short_line(value, limit):
    shown = one_line(value, limit)
    assert len(shown) <= limit
    assert shown.splitlines() in ([], [shown])
    assert not any(c < " " or c in "\u202a\u202b\u202d\u202e\u2066\u2067" for c in shown)
    shown.encode("utf-8")


# --- the page ---------------------------------------------------------------------------------


class ReportElements(HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(content)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data

    @property
    def kinds(self) -> set[str]:
        return {tag for tag, _ in self.elements}


def class_of_size(number: int, **more) -> ClassResults:
    rows = [make_report(f"s{n:05d}", n % 3, n % 2, n % 5, **more) for n in range(number)]
    return class_of_reports(*rows)


def test_texts_of_a_submission_are_escaped():
    details = {
        **mistake_fields("small." + HOSTILE, HOSTILE),
        "attention": (HOSTILE,),
        "notes": (HOSTILE,),
    }
    harmless_report = make_report(
        "ada", 1, 0, 0, attention=("a",), **mistake_fields("small.add_up", "b")
    )
    hostile_report = Report(
        HOSTILE, NAME, "graded", {HOSTILE: CellResult(0.0, 1.0, HOSTILE)}, **details
    )
    expected = ReportElements(class_page(Summary(class_of_reports(harmless_report))))
    elements = ReportElements(class_page(Summary(class_of_reports(hostile_report))))
    assert elements.kinds <= expected.kinds
    assert sum(tag == "script" for tag, _ in elements.elements) == 1
    assert not any(
        name.startswith("on") for _, attributes in elements.elements for name in attributes
    )
    assert "<script>alert(1)</script>" in elements.text
    assert "\x00" not in elements.text


@pytest.mark.parametrize("number", [0, 1, 2, 50])
def test_the_page_loads_nothing_from_a_network(number):
    content = class_page(
        Summary(class_of_size(number, **mistake_fields("small.add", "adds twice")))
    )
    links = [
        value
        for _, attributes in ReportElements(content).elements
        for name, value in attributes.items()
        if name in ("src", "href", "srcset", "action", "data", "poster")
    ]
    assert links == ["data:,"]
    assert not re.search(r"url\(|@import|https?:|fetch\(|XMLHttp", content)
    assert "default-src 'none'" in content


def test_an_empty_class_and_one_without_submissions_have_a_page():
    for results in (
        class_of_reports(),
        class_of_reports(make_report("ada", status="missing")),
    ):
        content = class_page(Summary(results))
        assert "Nobody has handed in anything" in content
        assert "<svg" not in content


def test_the_histogram_is_described_for_screen_readers():
    elements = ReportElements(class_page(Summary(class_of_size(9)))).elements
    pictures = [a for tag, a in elements if tag == "svg"]
    assert all(a.get("aria-hidden") or len(a["aria-label"]) > 20 for a in pictures)
    assert ("summary", {}) in elements  # the same as a table


def test_a_large_class_keeps_the_page_small():
    long_note = "a note that goes on and on, " * 60
    page_of_thousand = class_page(
        Summary(
            class_of_size(1000, attention=(long_note,), **mistake_fields("small.add", long_note))
        )
    )
    assert len(page_of_thousand.encode()) < 1_000_000
    assert page_of_thousand.count("<tr data-look") == 1000
    rows = [make_report(f"s{n:05d}", 2, 1, 4) for n in range(10_000)]
    rows[7777] = make_report("z-needs-a-look", 0, 0, 0, status="interrupted")
    content = class_page(Summary(class_of_reports(*rows)))
    assert len(content.encode()) < 1_000_000
    table = content.partition('<table id="students">')[2]
    assert table.count("<tr") == 1 + 1000
    assert 0 < table.find("z-<wbr>needs-<wbr>a-<wbr>look") < 1000
    assert "1000 of 10000 students" in content
    assert f"attncourse export {NAME}" in content


def luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_every_text_has_the_contrast_of_wcag_aa(mode):
    style = (HERE / "page.css").read_text()
    light, dark = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    colours = dict(re.findall(r"--(\w+): (#\w{6})", light if mode == "light" else dark))

    def contrast(a: str, b: str) -> float:
        high, low = sorted((luminance(colours[a]), luminance(colours[b])), reverse=True)
        return (high + 0.05) / (low + 0.05)

    for ground in ("ground", "card"):
        for ink in ("ink", "quiet", "accent", "look"):
            assert contrast(ink, ground) >= 4.5
    assert set(re.findall(r"[^-]color: ([^;]+);", style)) <= {
        *(f"var(--{name})" for name in colours),
        "inherit",
        "light dark",
    } | {"var(--ink)"}


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason=ABSENT)
def test_the_script_runs_and_sorts(tmp_path):
    rows = [
        make_report("ada", 2, 1, 4),
        make_report("bob", 0, 0, 0, attention=("x",)),
        make_report("cy", 1, 0, 0),
    ]
    content = class_page(Summary(class_of_reports(*rows)))

    def dom(content: str) -> str:
        path = tmp_path / "page.html"
        path.write_text(content)
        command = [BROWSER, *FLAGS, "--dump-dom", f"--user-data-dir={tmp_path / 'home'}"]
        return subprocess.run(
            [*command, f"file://{path}"], capture_output=True, text=True, timeout=60
        ).stdout

    def order(shown: str) -> list[str]:
        body = shown.partition('<table id="students">')[2].partition("<tbody>")[2]
        return re.findall(r'<tr(?: data-look="1")?><th scope="row">(\w+)<', body)

    shown = dom(content)  # the page's own policy lets its own script run
    assert "3 of 3 shown" in shown
    assert order(shown) == ["ada", "bob", "cy"]
    page_without_policy = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", content)
    clicks = "document.querySelectorAll('#students button')[1].click();"
    assert order(dom(page_without_policy + f"<script>{clicks}</script>")) == ["bob", "cy", "ada"]
    assert order(dom(page_without_policy + f"<script>{clicks * 2}</script>")) == [
        "ada",
        "cy",
        "bob",
    ]
    look = "document.getElementById('look').click();"
    assert order(dom(page_without_policy + f"<script>{look}</script>")) == [
        "bob"
    ]  # the others are hidden


def test_the_instructors_page_describes_every_field():
    page = (ROOT / "book" / "instructors.md").read_text()
    assert schema.markdown().strip() in page


@pytest.mark.parametrize(
    ("points", "caption"),
    [
        ((2, 2, 1), "Most, 2 of 3, are at 2 points."),
        ((2, 2, 1, 0), "The largest group, 2 of 4, is at 2 points."),
        ((2, 1, 2, 1), "The largest groups, 2 of 4 each, are at 1 and 2 points."),
        ((2, 1, 0, 3), "No group has more than 1 of 4."),
    ],
)
def test_the_caption_says_where_most_scores_are(tmp_path, points, caption):
    reports = [make_report(f"s{n}", earned, 0, 0) for n, earned in enumerate(points)]
    write_gradebook(write_reports(tmp_path, reports), reports)
    shown = class_page(Summary(class_results(tmp_path, NAME)))
    assert f"<figcaption>{caption}</figcaption>" in shown


def test_a_table_in_a_pipe_is_no_wider_than_a_page():
    console = Console(width=1000, file=io.StringIO())
    console.print(first_rows(("mistake", "why", "students#"), [("word " * 40, "word " * 50, "3")]))
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    assert max(map(len, lines)) <= 2 * MAX_COLUMN_WIDTH + 20
    assert " ".join(lines).count("word") == 40 + 50
