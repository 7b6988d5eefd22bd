"""Grading one submission: what runs, what it earns, and what a hostile one cannot spoil."""

import json
import math
import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from small_course import NAME, RIGHT, STUB, TESTS, cell, graded, make_course, notebook, small
from small_course import solution as answer

from attncourse.grading.course import find_assignment, find_submissions, grade_all
from attncourse.grading.errors import Unreadable
from attncourse.grading.judge import grade, judge_cell
from attncourse.grading.limits import Limits
from attncourse.grading.notebook import Assignment, Cell, read_cells
from attncourse.grading.plan import plan, without_magics

LIMITS = Limits(submission=30, cell=2)
SMALL = Assignment(NAME, read_cells(small()))


def graded_points(data: bytes, assignment: Assignment = SMALL, limits: Limits = LIMITS):
    report = grade(data, assignment, limits=limits)
    return report, {name: result.points for name, result in report.cells.items()}


# --- reading ----------------------------------------------------------------------------------


def test_cells_come_with_nbgraders_marks():
    tests = {c.grade_id: c for c in read_cells(small()) if c.test}
    assert list(tests) == ["setup", "points_add", "hidden_add", "points_twice"]
    assert [c.points for c in tests.values()] == [0, 2, 1, 4]
    assert SMALL.maximum == 7
    assert "setup" not in SMALL.graded


def test_a_byte_order_mark_and_the_old_format_are_read():
    assert read_cells(b"\xef\xbb\xbf" + small()) == read_cells(small())
    old = json.loads(small())
    for raw in old["cells"]:
        raw["input"] = raw.pop("source").splitlines(keepends=True)
    old = {"nbformat": 3, "worksheets": [{"cells": old.pop("cells")}]}
    assert read_cells(json.dumps(old).encode()) == read_cells(small())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b'{"cells": [\n\n  oops', "line 3"),
        (b'{"a": 1,\n"\xff\xfe": 2}', "line 2: not UTF-8"),
        (b"[1, 2]", "no list of cells"),
        (b'{"cells": [1]}', "no list of cells"),
        (b'{"cells": "none"}', "no list of cells"),
        (b"[" * 100_000, "nested"),
    ],
)
def test_what_is_no_notebook_is_unreadable_for_a_reason(data, reason):
    with pytest.raises(Unreadable, match=reason):
        read_cells(data)
    report = grade(data, SMALL)
    assert (report.status, report.points, report.maximum) == ("unreadable", 0, 7)
    assert reason in report.notes[0]


@pytest.mark.parametrize("junk", [None, 3, [], {"nbgrader": 7}, {"nbgrader": {"grade_id": 5}}])
def test_damaged_metadata_counts_as_none(junk):
    raw = {"cell_type": "code", "source": ["a = 1\n", 5, "b = 2"], "metadata": junk}
    assert read_cells(json.dumps({"cells": [raw]}).encode()) == (Cell("a = 1\nb = 2"),)


# --- what runs --------------------------------------------------------------------------------


def names(*cells: dict) -> list[str]:
    return [step.name for step in plan(read_cells(notebook(*cells)), SMALL)[0]]


def test_tests_are_the_instructors_whatever_the_submission_holds():
    changed = notebook(graded("points_add", "2", 2), answer("add", "def add(a, b): ..."))
    steps, _ = plan(read_cells(changed), SMALL)
    assert next(s.source for s in steps if s.grade_id == "points_add") == TESTS[1]["source"]


def test_lost_tests_come_back_before_the_next_kept_one_or_last():
    setup, points_add, hidden_add, points_twice = TESTS
    add, twice = answer("add", RIGHT[0]), answer("twice", RIGHT[1])
    full = ["test setup", "cell add", "cell twice", "test points_add", "test hidden_add"]
    assert names(setup, add, twice, points_add, hidden_add) == [*full, "test points_twice"]
    assert names(setup, add, twice, hidden_add, points_twice) == [*full, "test points_twice"]
    assert names(add, twice)[:2] == ["cell add", "cell twice"]
    assert names(add, twice, points_add)[2:4] == ["test setup", "test points_add"]


def test_a_second_copy_of_a_test_is_ignored():
    copies = notebook(answer("add", RIGHT[0]), *TESTS, *TESTS)
    steps, notes = plan(read_cells(copies), SMALL)
    assert len(steps) == 1 + len(TESTS)
    assert sum("second copy" in note for note in notes) == len(TESTS)


def test_ipythons_lines_are_taken_out_and_noted():
    source = "%matplotlib inline\nif x:\n    !ls -l\nfiles = !ls\nprint?\ny = 5 % 3"
    plain, changed = without_magics(source)
    assert plain == "pass\nif x:\n    pass\nfiles = None\npass\ny = 5 % 3"
    assert changed == ["!ls -l", "files = !ls", "print?"]
    assert without_magics('text = """\n%d items\n"""') == ('text = """\n%d items\n"""', [])
    assert without_magics("%%bash\nrm -r x")[0] == "\n"
    assert without_magics("%%time\nx = 1") == ("\nx = 1", [])


# --- what it earns ----------------------------------------------------------------------------


def test_a_right_submission_earns_everything_and_says_nothing():
    report, points = graded_points(small())
    assert points == {"points_add": 2, "hidden_add": 1, "points_twice": 4}
    assert (report.status, report.notes, report.misconceptions) == ("graded", (), ())


def test_an_empty_submission_earns_nothing():
    report, _ = graded_points(small(STUB, STUB))
    assert report.points == 0
    assert report.notes == ("not attempted: add, twice",)


def test_a_failing_cell_costs_itself_alone():
    report, points = graded_points(small(twice="def twice(a):\n    return a +"))
    assert points == {"points_add": 2, "hidden_add": 1, "points_twice": 0}
    assert any(note.startswith("cell twice: SyntaxError") for note in report.notes)
    assert "NameError" in report.cells["points_twice"].message


def test_partial_points_count():
    _, points = graded_points(small(add="def add(a, b): return 0"))
    assert points == {"points_add": 1, "hidden_add": 0, "points_twice": 4}


@pytest.mark.parametrize(
    ("last_line", "points"),
    [
        ("3", 3),
        ("0", 0),
        ("1.5", 1.5),
        ("import numpy; numpy.float32(2)", 2),
        ("None", 3),
        ("assert 1 == 1", 3),
        ("assert 1 == 2", 0),
        ("1 / 0", 0),
        ("True", 0),
        ("'3'", 0),
        ("float('nan')", 0),
        ("float('inf')", 0),
        ("-1", 0),
        ("3.0001", 0),
        ("10 ** 400", 0),
        ("[3]", 0),
        ("raise SystemExit", 0),
        ("raise KeyboardInterrupt", 0),
        ("import builtins; builtins.exit()", 0),
    ],
)
def test_what_is_not_clearly_earned_is_not_earned(last_line, points):
    assignment = Assignment("a", (Cell(last_line, grade_id="t", grade=True, points=3),))
    report, found = graded_points(notebook(), assignment)
    assert found == {"t": points}
    assert bool(report.cells["t"].message) == (points != 3)


@pytest.mark.parametrize(
    "lie", [None, {}, {"kind": "number"}, {"kind": "number", "value": "3"}, {"kind": "full"}]
)
def test_what_a_lying_worker_says_earns_nothing(lie):
    result = judge_cell(Cell("", grade_id="t", grade=True, points=3), lie)
    assert result.points == 0
    assert result.message


def test_misconceptions_come_from_the_checks():
    source = 'from attncourse.checks import examine\nexamine("mixing.mix", mix).earned'
    assignment = Assignment("m", (Cell(source, grade_id="points_mix", grade=True, points=50),))
    wrong = notebook(answer("mix", "def mix(A, X):\n    return A.mT @ X"))
    report, _ = graded_points(wrong, assignment)
    assert len(report.misconceptions) == 1
    assert report.misconceptions[0][0] == "mixing.mix"
    assert report.cells["points_mix"].message == report.misconceptions[0][1]
    assert isinstance(report.verdicts[0]["seed"], int)


def test_the_same_submission_gets_the_same_points_again():
    first, again = graded_points(small(add=STUB)), graded_points(small(add=STUB))
    assert first[1] == again[1]
    assert first[0].notes == again[0].notes


# --- submissions that misbehave ---------------------------------------------------------------


def workers() -> list[str]:
    """The worker processes that this test process started and that still run."""
    listed = subprocess.run(
        ["ps", "-eo", "ppid,args"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    mine = str(os.getpid())
    return [x for x in listed if "attncourse.grading.worker" in x and x.split()[0] == mine]


DEAF = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})"
SWALLOW = "while True:\n    try:\n        while True: pass\n    except BaseException: pass"


@pytest.mark.parametrize(
    ("twice", "told"),
    [
        ("while True: pass", "cell twice: did not end within 1 s"),
        ("import time\ntime.sleep(100)", "cell twice: did not end within 1 s"),
        (f"def f():\n    {SWALLOW.replace(chr(10), chr(10) + '    ')}\nf()", "did not end"),
        (f"{DEAF}\nwhile True: pass", "could not be interrupted"),
        ("import os\nos._exit(0)", "ended its process"),
        ("import os, signal\nos.kill(0, signal.SIGKILL)", "ended its process"),
        ("print('x' * 50_000_000)", ""),
    ],
)
def test_a_bad_cell_costs_itself_and_keeps_what_others_earn(twice, told):
    report, points = graded_points(small(twice=twice), limits=Limits(submission=30, cell=1))
    assert points == {"points_add": 2, "hidden_add": 1, "points_twice": 0}
    assert any(told in note for note in report.notes) or not told
    killed = "ended its process" in told or "interrupted" in told
    assert report.status == ("interrupted" if killed else "graded")
    assert workers() == []


def test_what_was_earned_before_a_death_is_not_lost_in_the_run_after_it(tmp_path):
    mark = tmp_path / "mark"
    add = (
        f"import os\nfirst = not os.path.exists({str(mark)!r})\nopen({str(mark)!r}, 'w').close()\n"
        "def add(a, b): return a + b if first else None"
    )
    _, points = graded_points(small(add=add, twice="def twice(a): os._exit(1)"))
    assert points == {"points_add": 2, "hidden_add": 1, "points_twice": 0}


def test_the_submissions_limit_keeps_what_was_earned_before():
    slow = (graded("points_twice", "import time\ntime.sleep(60)", 4),)
    assignment = Assignment("a", (*read_cells(small())[:-1], *read_cells(notebook(*slow))))
    started = time.monotonic()
    report, points = graded_points(small(), assignment, Limits(submission=3, cell=50))
    assert time.monotonic() - started < 8
    assert points == {"points_add": 2, "hidden_add": 1, "points_twice": 0}
    assert report.status == "interrupted"
    assert "3 s for the submission" in report.notes[-1]


def test_what_a_submission_starts_is_ended_with_it():
    mark = f"sleep 98{os.getpid()}"
    source = f"import subprocess\nsubprocess.Popen({mark.split()!r})\n{RIGHT[1]}"
    report, _ = graded_points(small(twice=source))
    assert report.points == 7
    listed = subprocess.run(["ps", "-eo", "stat,args"], capture_output=True, text=True, check=True)
    assert not [x for x in listed.stdout.splitlines() if mark in x and x[0] != "Z"]


def test_a_submission_has_a_folder_of_its_own_and_cannot_shadow_modules(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_SECRET", "42")
    source = (
        "import os\nassert os.listdir() == [] and os.getcwd() == os.environ['HOME']\n"
        "open('colorsys.py', 'w').write('raise Exception')\nimport colorsys\n"
        "assert 'COURSE_SECRET' not in os.environ\n" + RIGHT[1]
    )
    report, _ = graded_points(small(twice=source))
    assert (report.points, report.notes) == (7, ())


def test_functions_of_a_submission_have_a_source():
    source = "import inspect\nassert 'return 2 * a' in inspect.getsource(twice)"
    report, _ = graded_points(small(twice=RIGHT[1] + "\n" + source))
    assert report.notes == ()


# --- a class ----------------------------------------------------------------------------------


def test_a_class_is_graded_whatever_some_of_it_is(tmp_path):
    course = make_course(tmp_path, right=small(), empty=small(STUB, STUB), torn=b'{"cells": [')
    (course / "submitted" / "absent").mkdir()
    two = course / "submitted" / "two" / NAME
    two.mkdir(parents=True)
    (two / "a.ipynb").write_bytes(small())
    renamed = course / "submitted" / "renamed" / NAME
    renamed.mkdir(parents=True)
    (renamed / "my answers.ipynb").write_bytes(small())
    (two / "b.ipynb").write_bytes(small())
    submissions = find_submissions(course, NAME)
    told = []
    with ThreadPoolExecutor(2) as pool:
        reports = grade_all(submissions, find_assignment(course, NAME), pool, LIMITS, told.append)
    found = {report.student: (report.status, report.points) for report in reports}
    assert found == {
        "absent": ("missing", 0),
        "empty": ("graded", 0),
        "renamed": ("graded", 7),
        "right": ("graded", 7),
        "torn": ("unreadable", 0),
        "two": ("missing", 0),
    }
    assert list(found) == sorted(found)
    assert {report.student for report in told} == set(found)
    assert math.isclose(sum(report.maximum for report in reports), 6 * 7)
    assert "my answers.ipynb" in reports[2].notes[0]


def test_a_lost_title_or_a_note_of_ones_own_changes_nothing():
    extra = notebook(
        cell("# mine", code=False), cell("note = 1"), answer("add", RIGHT[0]), *TESTS[:1]
    )
    _, points = graded_points(extra)
    assert points == {"points_add": 2, "hidden_add": 1, "points_twice": 0}
