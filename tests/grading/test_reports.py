"""Reports: their format, the class at a glance, and the page."""

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

NOTHING = "nothing handed in"
SMALL = Assignment(NAME, read_cells(small()))
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
    report = grade_submission(SUBMISSIONS[name], SMALL, student="ada")
    content = json.loads(json.dumps(to_json(report)))
    jsonschema.Draft202012Validator(schema.report_schema()).validate(content)
    assert report_from_json(content) == report


def test_the_schemas_file_is_what_the_classes_say():
    """Else: python tools/report_format.py --write."""
    assert json.loads(schema.PATH.read_text("utf-8")) == schema.report_schema()


def test_a_verdict_in_a_report_has_its_classs_fields():
    verdict = examine("kqv.project", lambda x, w: 2 * x @ w)
    assert not verdict.passed
    told = describe_verdict(verdict, "points_project")
    assert told.keys() == ReportedVerdict.__annotations__.keys()
    for criterion in told["criteria"]:
        assert criterion.keys() == ReportedCriterion.__annotations__.keys()


def test_the_schema_describes_every_field_and_refuses_others():
    found = schema.report_schema()
    jsonschema.Draft202012Validator.check_schema(found)
    content = json.loads(json.dumps(to_json(make_report("ada", 2, 1, 4))))
    assert found["properties"]["schema"]["const"] == SCHEMA
    assert found["$id"] == f"urn:attncourse:report:{SCHEMA}"
    assert set(found["properties"]) == set(found["required"]) == set(content)
    validator = jsonschema.Draft202012Validator(found)
    assert validator.is_valid(content)
    for wrong in (
        {"status": "fine"},
        {"schema": SCHEMA + 1},
        {"cells": {"points_add": {"points": "2", "maximum": 2, "message": ""}}},
        {"mistakes": [["kqv.project"]]},
        {"grade": 1.0},
    ):
        assert not validator.is_valid({**content, **wrong})


def test_the_table_of_the_format_has_a_row_for_every_field():
    lines = schema.markdown().splitlines()
    assert all(line.count("|") == 4 for line in lines)
    for path in ("seed", "cells.NAME.points", "verdicts[].criteria[].message", "limits.NAME.used"):
        assert sum(line.startswith(f"| `{path}` |") for line in lines) == 1
    assert "| |" not in schema.markdown()


def test_one_point_is_one_point_wherever_it_is_said():
    assert [count(n, "point") for n in (0, 0.5, 1, 1.0, 2)] == [
        "0 points",
        "0.5 points",
        "1 point",
        "1 point",
        "2 points",
    ]
    cells = {"small.add": CellResult(0, 1, NOT_ATTEMPTED), "small.twice": CellResult(0, 1, "no")}
    one = Report("ada", NAME, "graded", cells)
    said = own_verdicts(replace(one, cells={**cells, "small.one": CellResult(1, 1)}))
    single = Report("ada", NAME, "graded", {"points_add": CellResult(1, 1)})
    summary = Summary(a_class(single))
    said += (
        own_verdicts(single) + printed(at_a_glance(summary)) + class_page(summary) + summary.fullest
    )
    said += lateness_in_words(60, 1) + " ".join(changes_of_cells({}, {"add": ("", 1.0)}))
    said += " ".join(changes_of_cells({"add": ("", 1.0)}, {}))
    assert len(re.findall(r"\b1 point\b", said)) > 8
    assert not re.search(r"\b1 points", said)


# --- figures ----------------------------------------------------------------------------------


def a_class(*reports: Report) -> ClassResults:
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
    assert sum(b.count for b in bins) == len(scores)
    assert len(bins) <= 11
    assert bins[0].low == 0
    assert all(a.low < b.low for a, b in itertools.pairwise(bins))
    for b, following in zip(bins, [*bins[1:], None], strict=True):
        above = following.low if following else math.inf
        assert b.count == sum(b.low <= score < above for score in scores)


@given(st.lists(st.integers(0, 100), min_size=1, max_size=30))
def test_quartiles_are_what_the_textbook_says(scores):
    low, middle, high = quartiles(scores)
    assert middle == statistics.median(scores)
    assert min(scores) <= low <= middle <= high <= max(scores)


@pytest.mark.parametrize(
    ("waiting", "shown"), [(0, "50%"), (1, "33%"), (2, "0%"), (3, "–"), (4, "–")]
)
def test_an_exercise_has_shares_once_most_of_it_is_scored(waiting, shown):
    """Of four answers the first two are right; those that wait do not count."""
    twice = [
        StudentResult(
            *(Person(str(n)), NAME, "graded", {"points_twice": CellResult(4 * (n < 2), 4)}),
            waiting=("points_twice",) if n < waiting else (),
        )
        for n in range(4)
    ]
    summary = Summary(ClassResults(NAME, tuple(twice)))
    assert summary.exercises[0].shares[0] == shown
    assert re.search(rf"twice +4 +{shown} ", printed(at_a_glance(summary)))
    assert f'<td class="number">{shown}</td>' in class_page(summary)


def failing(cell: str = "points_add", **more) -> dict:
    """A verdict on a failure without a name."""
    kept = {"cell": cell, "target": "small.add", "mistake": "", "failed": ["sums"]}
    return kept | {"symptom": "", "reason": "is 3, not 4", "unwritten": False} | more


def test_failures_without_a_name_are_counted():
    lost = {"points_add": CellResult(0, 2, "is 3"), "hidden_add": CellResult(0, 1, "a hidden test")}
    plain = {"points_twice": CellResult(0, 4, "AssertionError: is 3, not 4\n> line 2")}
    only = {"points_add": CellResult(2, 2), "hidden_add": CellResult(0, 1, "a hidden test failed")}
    reports = [
        Report("ada", NAME, "graded", lost, verdicts=(failing(),)),
        Report("bob", NAME, "graded", lost, verdicts=(failing(reason="is 7, not 8"),) * 2),
        Report("cy", NAME, "graded", lost, verdicts=(failing(symptom="transposed"),)),
        Report("dot", NAME, "graded", lost, verdicts=(failing(unwritten=True),)),
        Report("eve", NAME, "graded", plain),
        Report("fay", NAME, "graded", only),
        Report("gus", NAME, "graded", lost, **mistake_fields("small.add", "adds twice")),
        Report("hal", NAME, "unreadable", plain),
        Report("ida", NAME, "graded", lost, verdicts=(failing("hidden_add", failed=[]),)),
    ]
    found = [from_report(Person(r.student), NAME, r) for r in reports]
    summary = Summary(ClassResults(NAME, tuple(found)))
    counted = [(m.exercise, m.name, m.students) for m in summary.failures]
    assert counted == [
        ("add", "fails at: sums", 2),
        ("add", "a hidden test failed", 1),
        ("add", "is 3", 1),
        ("add", "not attempted", 1),
        ("add", "transposed", 1),
        ("twice", "AssertionError: is 3, not 4", 1),
    ]
    assert summary.failures[0].explanation == "is 3, not 4"
    text = printed(at_a_glance(summary))
    assert "failures without a name" in text
    assert " add: transposed" in text
    assert "Failures without a name</h2>" in class_page(summary)


def printed(what, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    console.print(what, crop=False)
    return console.file.getvalue()


LONG = "scaled_dot_product_attention"


def test_a_class_table_has_a_line_for_each_finding():
    named = mistake_fields(f"kqv.{LONG}", "masked after the softmax, not renormalised")
    words = " ".join(["scores"] * 30)
    notes = (f"{LONG}: {words} end", "two\nlines")
    reports = [
        make_report("a-student-with-a-rather-long-name-" * 2, 2, 1, 4),
        make_report("bob", 0, 0, 4, notes=notes, **named),
        make_report("cy", 0, 0, 0, notes=tuple(f"note {n}" for n in range(9))),
    ]
    lines = [line.rstrip() for line in printed(class_table(reports, 80)).rstrip().splitlines()]
    assert lines[2] == f" {reports[0].student}   7 / 7"
    assert lines[3].split() == ["bob", "4", "/", "7"]
    assert lines[4] == f"   {LONG}: masked after the softmax, not renormalised"
    assert lines[5].startswith(f"   {LONG}: scores")
    assert lines[5].endswith(" scores …")
    assert len(lines[5]) <= 80
    assert lines[6] == "   two lines"
    assert lines[8:] == [*(f"   note {n}" for n in range(5)), "   and 4 more"]
    wide = printed(class_table(reports, MAX_LINE_WIDTH), MAX_LINE_WIDTH).splitlines()
    assert f"   {notes[0]}" in [line.rstrip() for line in wide]


def test_lines_are_broken_at_a_terminals_edge_and_not_in_a_pipe(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert wide_console().width == MAX_LINE_WIDTH
    monkeypatch.setenv("COLUMNS", "97")
    assert wide_console().width == 97


def test_figures_by_hand():
    found = Summary(
        a_class(
            make_report("ada", 2, 1, 4, **mistake_fields("small.add", "adds twice")),
            make_report("bob", 2, 0, 4, **mistake_fields("small.add", "adds twice")),
            make_report("cy", 0, 0, 0, status="unreadable", notes=("unreadable notebook: line 2",)),
            make_report(
                "dot", 2, 1, 0, status="interrupted", **mistake_fields("small.twice", "squares")
            ),
            make_report("eve", status="missing"),
        )
    )
    assert found.counts == {"graded": 2, "interrupted": 1, "unreadable": 1, "missing": 1}
    assert (found.handed_in, found.maximum) == (4, 7)
    assert found.mean == (7 + 6 + 0 + 3) / 4
    assert found.quartiles == (2.25, 4.5, 6.25)
    assert [b.count for b in found.bins] == [1, 0, 0, 1, 0, 0, 1, 1]
    add, twice = found.exercises
    assert (add.name, add.points, add.full, add.zero) == ("add", 3, 0.5, 0.25)
    assert add.mean == pytest.approx((1 + 2 / 3 + 0 + 1) / 4)
    assert (twice.name, twice.mean, twice.full, twice.zero) == ("twice", 0.5, 0.5, 0.5)
    assert [(m.name, m.students) for m in found.mistakes] == [
        ("adds twice", 2),
        ("squares", 1),
    ]
    assert [r.student for r in found.attention] == ["cy", "dot"]


def test_where_points_come_from(tmp_path):
    reports = [
        make_report("ada", 2, 1, 4, **mistake_fields("small.add", "adds twice", "Add once.")),
        make_report("bob", 0, 0, 4, attention=("missing tests were put back: points_add",)),
        make_report("cy", 2, 1, 4, attention=("prints the seed",), sandbox=False),
    ]
    write_reports(tmp_path, [*reports, make_report("only-here", 1, 0, 0)])
    (tmp_path / "submitted" / "only-here").mkdir(parents=True)  # or the student has left
    changed = {("bob", "points_add"): 1.5}
    write_gradebook(tmp_path, reports, manual=changed, late={"cy": 2.0, "ada": 99.0})
    found = class_results(tmp_path, NAME)
    by_name = {r.student: r for r in found.results}
    assert {s: r.score for s, r in by_name.items()} == {
        "ada": 0,  # a penalty takes no more than there is
        "bob": 5.5,
        "cy": 5,
        "only-here": 1,
    }
    assert by_name["bob"].manual == ("points_add",)
    assert by_name["only-here"].source == "report"
    assert list(by_name["ada"].cells) == list(MAXIMA)
    assert found.explanations == {("small.add", "adds twice"): "Add once."}
    looks = {r.student: r.attention for r in found.results if r.attention}
    assert looks["bob"] == ("missing tests were put back: points_add",)
    assert by_name["bob"].older == "scored by a person before it was graded again: points_add"
    left = (
        "Was scored by a person before it was graded again, and may be another answer now: "
        "points_add of 1 student."
    )
    assert left in " ".join(printed(at_a_glance(Summary(found)), 200).split())
    assert left in class_page(Summary(found))
    assert looks["cy"] == ("prints the seed", "graded without a sandbox")
    assert "1 submission that it does not have" in Summary(found).sources


@pytest.mark.parametrize(
    "damage",
    [
        *({"schema": 1}, {"cells": 3}, {"more": 1}, {"notes": [1]}, {"mistakes": [[1, 2]]}),
        *({"verdicts": [{}]}, {"cells": {"points_add": {"points": "2", "maximum": 2}}}, [], "torn"),
    ],
)
def test_a_damaged_report_costs_only_its_details(tmp_path, damage):
    reports = [make_report("ada", 2, 1, 4), make_report("bob", 2, 0, 0)]
    write_gradebook(write_reports(tmp_path, reports), reports)
    path = tmp_path / "reports" / NAME / "ada.json"
    content = {**to_json(reports[0]), **damage} if isinstance(damage, dict) else damage
    path.write_text("{" if damage == "torn" else json.dumps(content))
    found = class_results(tmp_path, NAME).results
    assert [(r.student, r.score) for r in found] == [("ada", 7), ("bob", 2)]
    assert f"its report cannot be read: reports/{NAME}/ada.json: " in found[0].attention[0]
    assert printed(at_a_glance(Summary(class_results(tmp_path, NAME))), 200)


def test_mended_files_are_to_be_looked_at():
    kept = [cell for cell in TESTS if cell["id"] != "points_add"]
    answers = [answer("add", "def add(a, b):\n    return a + b"), answer("twice", STUB)]
    report = grade_submission(notebook(*answers, *kept), SMALL, student="ada")
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
        make_report("dot", status="missing", notes=(NOTHING,), attention=(NOTHING,)),
        make_report("eve", status="missing", attention=("several notebooks",)),
    ]
    write_gradebook(write_reports(tmp_path, reports), reports)
    done = run("report", NAME, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for words in (
        "3 of 5 students handed in, 2 missing, 1 unreadable",
        "mean 2.667, median 1",
        " add: adds twice",
        "Add once.",
        "unreadable notebook: line 2",
        "from the gradebook",
        "to look at (2)",
        "several notebooks",
    ):
        assert words in done.stdout
    assert (tmp_path / "reports" / NAME / "index.html").is_file()
    assert run("report", NAME, "--html", "elsewhere.html", cwd=tmp_path).returncode == 0
    assert (tmp_path / "elsewhere.html").is_file()


def test_report_without_a_gradebook_says_so(tmp_path):
    write_reports(tmp_path, [make_report("ada", 2, 1, 4)])
    done = run("report", NAME, cwd=tmp_path)
    assert done.returncode == 0
    assert "Points are from the reports" in done.stdout
    assert not (tmp_path / "gradebook.db").exists()


def test_report_refuses_in_one_line(tmp_path):
    (tmp_path / "solutions" / NAME).mkdir(parents=True)
    refuses(run("report", "01_smal", cwd=tmp_path), "did you mean 01_small?")
    refuses(run("report", NAME, cwd=tmp_path), f"attncourse grade {NAME}")
    write_reports(tmp_path, [make_report("ada", 2, 1, 4)])
    (tmp_path / "file").write_text("")
    done = run("report", NAME, "--html", "file/page.html", cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot write file/page.html" in done.stderr
    (tmp_path / "gradebook.db").write_text("not a database, but long enough to look at" * 40)
    refuses(run("report", NAME, cwd=tmp_path), "cannot read gradebook.db")


def test_texts_of_submissions_cannot_steer_a_terminal():
    from rich.console import Console

    report = make_report(
        "ada" + HOSTILE, 1, 0, 0, attention=(HOSTILE,), **mistake_fields("small.add", HOSTILE)
    )
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(at_a_glance(Summary(a_class(report))))
    shown = console.export_text()
    assert not set(shown) & {"\x00", "\x1b", "\u202e"}


@given(st.text(), st.integers(2, 50))
def test_plain_is_one_short_line(value, limit):
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
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(content)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data

    @property
    def kinds(self) -> set[str]:
        return {tag for tag, _ in self.found}


def many(number: int, **more) -> ClassResults:
    rows = [make_report(f"s{n:05d}", n % 3, n % 2, n % 5, **more) for n in range(number)]
    return a_class(*rows)


def test_nothing_of_a_submission_is_markup():
    told = {
        **mistake_fields("small." + HOSTILE, HOSTILE),
        "attention": (HOSTILE,),
        "notes": (HOSTILE,),
    }
    harmless = make_report("ada", 1, 0, 0, attention=("a",), **mistake_fields("small.add_up", "b"))
    hostile = Report(HOSTILE, NAME, "graded", {HOSTILE: CellResult(0.0, 1.0, HOSTILE)}, **told)
    expected = ReportElements(class_page(Summary(a_class(harmless))))
    found = ReportElements(class_page(Summary(a_class(hostile))))
    assert found.kinds <= expected.kinds
    assert sum(tag == "script" for tag, _ in found.found) == 1
    assert not any(name.startswith("on") for _, attributes in found.found for name in attributes)
    assert "<script>alert(1)</script>" in found.text
    assert "\x00" not in found.text


@pytest.mark.parametrize("number", [0, 1, 2, 50])
def test_the_page_asks_nothing_of_a_network(number):
    content = class_page(Summary(many(number, **mistake_fields("small.add", "adds twice"))))
    links = [
        value
        for _, attributes in ReportElements(content).found
        for name, value in attributes.items()
        if name in ("src", "href", "srcset", "action", "data", "poster")
    ]
    assert links == ["data:,"]
    assert not re.search(r"url\(|@import|https?:|fetch\(|XMLHttp", content)
    assert "default-src 'none'" in content


def test_an_empty_class_and_one_without_submissions_have_a_page():
    for found in (a_class(), a_class(make_report("ada", status="missing"))):
        content = class_page(Summary(found))
        assert "Nobody has handed in anything" in content
        assert "<svg" not in content


def test_the_histogram_can_be_read_without_seeing_it():
    elements = ReportElements(class_page(Summary(many(9)))).found
    pictures = [a for tag, a in elements if tag == "svg"]
    assert all(a.get("aria-hidden") or len(a["aria-label"]) > 20 for a in pictures)
    assert ("summary", {}) in elements  # the same as a table


def test_a_large_class_keeps_the_page_small():
    long = "a note that goes on and on, " * 60
    thousand = class_page(
        Summary(many(1000, attention=(long,), **mistake_fields("small.add", long)))
    )
    assert len(thousand.encode()) < 1_000_000
    assert thousand.count("<tr data-look") == 1000
    rows = [make_report(f"s{n:05d}", 2, 1, 4) for n in range(10_000)]
    rows[7777] = make_report("z-needs-a-look", 0, 0, 0, status="interrupted")
    content = class_page(Summary(a_class(*rows)))
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
    content = class_page(Summary(a_class(*rows)))

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
    free = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", content)
    clicks = "document.querySelectorAll('#students button')[1].click();"
    assert order(dom(free + f"<script>{clicks}</script>")) == ["bob", "cy", "ada"]
    assert order(dom(free + f"<script>{clicks * 2}</script>")) == ["ada", "cy", "bob"]
    look = "document.getElementById('look').click();"
    assert order(dom(free + f"<script>{look}</script>")) == ["bob"]  # the others are hidden


def test_the_instructors_page_describes_every_field():
    page = (ROOT / "book" / "instructors.md").read_text()
    assert schema.markdown().strip() in page


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ((2, 2, 1), "Most, 2 of 3, are at 2 points."),
        ((2, 2, 1, 0), "The largest group, 2 of 4, is at 2 points."),
        ((2, 1, 2, 1), "The largest groups, 2 of 4 each, are at 1 and 2 points."),
        ((2, 1, 0, 3), "No group has more than 1 of 4."),
    ],
)
def test_only_most_are_called_most(tmp_path, points, said):
    reports = [make_report(f"s{n}", earned, 0, 0) for n, earned in enumerate(points)]
    write_gradebook(write_reports(tmp_path, reports), reports)
    shown = class_page(Summary(class_results(tmp_path, NAME)))
    assert f"<figcaption>{said}</figcaption>" in shown


def test_a_table_in_a_pipe_is_no_wider_than_a_page():
    console = Console(width=1000, file=io.StringIO())
    console.print(first_rows(("mistake", "why", "students#"), [("word " * 40, "word " * 50, "3")]))
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    assert max(map(len, lines)) <= 2 * MAX_COLUMN_WIDTH + 20
    assert " ".join(lines).count("word") == 40 + 50
