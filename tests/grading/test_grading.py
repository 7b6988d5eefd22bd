"""Grading submissions: what they earn, and what hostile ones cannot spoil."""

import json
import math
import os
import select
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psutil
import pytest

from attncourse.grading import cli
from attncourse.grading.course import folders
from attncourse.grading.driver.command import grade_course
from attncourse.grading.judge import lanes as holding
from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.judge.lanes import Lane, Lanes, LaneSettings
from attncourse.grading.judge.outcomes import StepOutcome
from attncourse.grading.judge.points import judge_cell
from attncourse.grading.judge.wire.frames import FRAME_HEADER
from attncourse.grading.limits import Limits
from attncourse.grading.report import report_from_json
from attncourse.grading.submission.notebook import Assignment, Cell, read_cells
from helpers.dedented_text import dedented
from helpers.small_course import (
    NAME,
    RIGHT,
    STUB,
    TESTS,
    cell,
    graded,
    make_course,
    notebook,
    small,
)
from helpers.small_course import solution as answer

pytestmark = pytest.mark.from_exec  # the tests count the processes below this one
LIMITS = Limits(submission=30, cell=2)
SMALL_ASSIGNMENT = Assignment(NAME, read_cells(small()))


def report_and_points(
    data: bytes, assignment: Assignment = SMALL_ASSIGNMENT, limits: Limits = LIMITS
):
    """Return the report on a submission, and its points by test."""
    report = grade_submission(data, assignment, limits=limits)
    return report, {name: result.points for name, result in report.cells.items()}


# --- what it earns ----------------------------------------------------------------------------


def test_a_right_submission_earns_all_points_without_notes():
    report, points = report_and_points(small())
    assert points == {"points_add": 2, "hidden_add": 1, "points_twice": 4}
    assert (report.status, report.notes, report.mistakes) == ("graded", (), ())


def test_an_empty_submission_earns_nothing():
    report, _ = report_and_points(small(STUB, STUB))
    assert report.points == 0
    assert report.notes == ("not attempted: add, twice",)


def test_a_failing_cell_loses_only_its_points():
    report, points = report_and_points(small(twice="def twice(a):\n    return a +"))
    assert points == {"points_add": 2, "hidden_add": 1, "points_twice": 0}
    assert any(note.startswith("cell twice: SyntaxError") for note in report.notes)
    assert report.cells["points_twice"].message.startswith("its cell ended in SyntaxError: ")


@pytest.mark.parametrize(
    ("answers", "beginnings"),
    [
        ({"twice": "def double(a):\n    return 2 * a"}, ["twice: nothing is called twice"]),
        ({"twice": "def twice(a):\n    return 3 * a"}, ["twice: "]),
        ({"add": "def add(a, b): return 0"}, ["add: 1 of 2 points"]),
        ({"add": "sum_ = 1", "twice": "x ="}, ["cell twice: SyntaxError", "add: nothing"]),
        (
            {"add": STUB, "twice": "import sys\nsys.exit()"},
            ["cell twice: SystemExit", "not attempted: add"],
        ),
    ],
)
def test_each_exercise_that_lost_points_has_one_note(answers, beginnings):
    report, _ = report_and_points(small(**answers))
    assert len(report.notes) == len(beginnings)
    assert all(
        note.startswith(beginning) for note, beginning in zip(report.notes, beginnings, strict=True)
    )


def test_partial_points_count():
    _, points = report_and_points(small(add="def add(a, b): return 0"))
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
def test_only_a_valid_result_of_a_test_earns_points(last_line, points):
    assignment = Assignment("a", (Cell(last_line, grade_id="t", grade=True, points=3),))
    report, points_by_cell = report_and_points(notebook(), assignment)
    assert points_by_cell == {"t": points}
    assert bool(report.cells["t"].message) == (points != 3)


@pytest.mark.parametrize(
    "outcome",
    [
        None,
        StepOutcome("lost", "ended"),
        StepOutcome("error", "ValueError"),
        StepOutcome("timeout", "did not end"),
        StepOutcome("other", "a list"),
        *(StepOutcome("number", value=x) for x in (math.nan, math.inf, -0.5, 3.5)),
    ],
)
def test_an_outcome_without_valid_points_earns_none(outcome):
    result = judge_cell(Cell("", grade_id="t", grade=True, points=3), outcome)
    assert result.points == 0
    assert result.message


def test_mistakes_come_from_the_checks():
    source = 'from attncourse.checks import examine\nexamine("mixing.mix", mix).earned'
    assignment = Assignment("m", (Cell(source, grade_id="points_mix", grade=True, points=50),))
    wrong = notebook(answer("mix", "def mix(A, X):\n    return A.mT @ X"))
    report, _ = report_and_points(wrong, assignment)
    assert len(report.mistakes) == 1
    assert report.mistakes[0][0] == "mixing.mix"
    assert report.cells["points_mix"].message == report.mistakes[0][1]
    assert isinstance(report.verdicts[0]["seed"], int)


def test_the_same_submission_gets_the_same_points_again():
    first, second = report_and_points(small(add=STUB)), report_and_points(small(add=STUB))
    assert first[1] == second[1]
    assert first[0].notes == second[0].notes


# --- submissions that misbehave ---------------------------------------------------------------


def number_of_child_processes() -> int:
    """Return the number of processes below this one: lanes, their zygotes and next workers."""
    return sum(p.status() != "zombie" for p in psutil.Process().children(recursive=True))


LANE_MODULE = "attncourse.grading.judge.lane"
BLOCK_ALARM = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})"
SWALLOW_INTERRUPTS = dedented("""
    while True:
        try:
            while True: pass
        except BaseException: pass
""")


@pytest.mark.parametrize(
    ("twice", "note_part"),
    [
        ("while True: pass", "cell twice: did not end within "),
        ("import time\ntime.sleep(100)", "cell twice: did not end within 4 s on the clock"),
        (
            f"def f():\n    {SWALLOW_INTERRUPTS.replace(chr(10), chr(10) + '    ')}\nf()",
            "did not end",
        ),
        (f"{BLOCK_ALARM}\nwhile True: pass", "could not be interrupted"),
        ("import os\nos._exit(0)", "ended its process"),
        ("import os, signal\nos.kill(0, signal.SIGKILL)", ""),  # the first of its namespace
        ("import os, signal\nos.kill(-1, signal.SIGKILL)", ""),
        ("print('x' * 50_000_000)", ""),
    ],
)
def test_a_bad_cell_loses_only_its_own_points(twice, note_part):
    limits = Limits(submission=30, cell=0.5)
    report_and_points(small(), limits=limits)
    before = number_of_child_processes()
    report, points = report_and_points(small(twice=twice), limits=limits)
    assert points == {"points_add": 2, "hidden_add": 1, "points_twice": 0}
    assert any(note_part in note for note in report.notes) or not note_part
    killed = "ended its process" in note_part or "interrupted" in note_part
    assert report.status == ("interrupted" if killed else "graded")
    assert number_of_child_processes() == before


def test_the_submissions_limit_keeps_points_earned_before():
    slow_test = (graded("points_twice", "import time\ntime.sleep(600)", 4),)
    assignment = Assignment("a", (*read_cells(small())[:-1], *read_cells(notebook(*slow_test))))
    start = time.monotonic()
    report, points = report_and_points(small(), assignment, Limits(submission=1, cell=50))
    assert time.monotonic() - start < 200  # run twice; the sleep, the cell's limit: longer
    assert points == {"points_add": 2, "hidden_add": 1, "points_twice": 0}
    assert report.status == "interrupted"
    assert "time for the submission was over" in report.notes[-1]


def test_processes_of_a_submission_end_with_it():
    mark = f"sleep 98{os.getpid()}"
    source = f"import subprocess\nsubprocess.Popen({mark.split()!r})\n{RIGHT[1]}"
    report, _ = report_and_points(small(twice=source))
    assert report.points == 7  # the definitions below what failed are run
    assert "BlockingIOError" in report.notes[0]
    report, _ = report_and_points(small(twice=source), limits=Limits(processes=8))
    assert report.points == 7
    running = psutil.process_iter(["cmdline", "status"])
    started = [p.info for p in running if mark in " ".join(p.info["cmdline"] or ())]
    assert [p for p in started if p["status"] != psutil.STATUS_ZOMBIE] == []


def test_a_submission_cannot_shadow_modules(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_SECRET", "42")
    source = (
        "import os\nassert os.listdir() == [] and os.getcwd() == os.environ['HOME']\n"
        "open('colorsys.py', 'w').write('raise Exception')\nimport colorsys\n"
        "assert 'COURSE_SECRET' not in os.environ\n" + RIGHT[1]
    )
    report, _ = report_and_points(small(twice=source))
    assert (report.points, report.notes) == (7, ())


def test_functions_of_a_submission_have_a_source():
    source = "import inspect\nassert 'return 2 * a' in inspect.getsource(twice)"
    report, _ = report_and_points(small(twice=RIGHT[1] + "\n" + source))
    assert report.notes == ()


# --- a class ----------------------------------------------------------------------------------


def test_a_class_with_bad_submissions_is_graded(tmp_path):
    course = make_course(tmp_path, right=small(), empty=small(STUB, STUB), torn=b'{"cells": [')
    (course / "submitted" / "absent").mkdir()
    folder_of_two = course / "submitted" / "two" / NAME
    folder_of_two.mkdir(parents=True)
    (folder_of_two / "a.ipynb").write_bytes(small())
    (folder_of_two / "b.ipynb").write_bytes(small())
    renamed = course / "submitted" / "renamed" / NAME
    renamed.mkdir(parents=True)
    (renamed / "my answers.ipynb").write_bytes(small())
    (renamed / "._my answers.ipynb").write_bytes(b"what a Mac leaves")
    outcome = grade_course(course, NAME, limits=LIMITS)
    status_and_points = {r.student: (r.status, r.points) for r in outcome.reports}
    assert status_and_points == {
        "absent": ("missing", 0),
        "empty": ("graded", 0),
        "renamed": ("graded", 7),
        "right": ("graded", 7),
        "torn": ("unreadable", 0),
        "two": ("unreadable", 0),
    }
    assert math.isclose(sum(report.maximum for report in outcome.reports), 6 * 7)
    notes = {r.student: r.notes for r in outcome.reports}
    assert "my answers.ipynb" in notes["renamed"][0]


def test_lanes_start_before_anything_is_read(tmp_path, monkeypatch):
    course, calls = make_course(tmp_path, one=small(), two=small()), []
    for module, name in ((holding, "launch_lanes"), (folders, "find_assignment")):

        def record_call(*arguments, name=name, do=getattr(module, name)):
            calls.append(name)
            return do(*arguments)

        monkeypatch.setattr(module, name, record_call)
    monkeypatch.setattr(cli, "end_process", lambda status: None)
    holding.LANES.end_idle()
    options = {"student": None, "db": None, "force": False, "dask": None, "unsafe": False}
    cli.grade(NAME, jobs=2, timeout=LIMITS.submission, course=course, **options)
    holding.LANES.end_idle()
    assert calls == ["launch_lanes", "find_assignment"]
    reports = (course / "reports" / NAME).glob("[ot]*.json")
    assert [report_from_json(json.loads(r.read_text())).points for r in reports] == [7, 7]


def test_a_students_own_notes_change_nothing():
    extra = notebook(
        cell("# mine", code=False), cell("note = 1"), answer("add", RIGHT[0]), *TESTS[:1]
    )
    _, points = report_and_points(extra)
    assert points == {"points_add": 2, "hidden_add": 1, "points_twice": 0}


ENDLESS_DRIVER = """
import sys
sys.path.insert(0, {tests!r})
from helpers.small_course import NAME, small
from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.judge.lanes import Lane, Lanes, LaneSettings
from attncourse.grading.submission.notebook import Assignment, read_cells
endless = "import threading\\nwhile True: pass"
print("go", flush=True)
grade_submission(small(twice=endless), Assignment(NAME, read_cells(small())))
"""


def test_no_process_outlives_a_killed_driver():
    code = ENDLESS_DRIVER.format(tests=os.path.dirname(os.path.dirname(__file__)))
    children: list[psutil.Process] = []
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as driver:
        try:
            assert driver.stdout.readline() == b"go\n"
            until = time.monotonic() + 120
            while len(children) < 4 and time.monotonic() < until:  # lane, zygote, worker, next one
                children = psutil.Process(driver.pid).children(recursive=True)
                time.sleep(0.1)
            assert len(children) >= 4
        finally:
            driver.kill()
    _, alive = psutil.wait_procs(children, timeout=60)
    assert alive == []


def test_a_lane_that_is_killed_is_replaced():
    """A kill from outside is not the submission's doing, so it costs no points."""
    slow = small(twice="import time\ntime.sleep(4)")
    with ThreadPoolExecutor() as pool:
        report_and_points(small())
        lanes = [p for p in psutil.Process().children() if LANE_MODULE in p.cmdline()]
        assert lanes
        running = pool.submit(report_and_points, slow, SMALL_ASSIGNMENT, Limits(cell=10))
        time.sleep(1)
        for lane in lanes:
            lane.kill()
        report, _ = running.result()
    assert (report.status, report.points) == ("graded", 3)
    assert report_and_points(small())[0].points == 7


@pytest.fixture
def lanes():
    """Start two lanes together."""
    pool = Lanes()
    pool.start_missing([LaneSettings((), (), False, 1, ())] * 2)
    yield pool
    pool.end_all()


def pid_of_lane(lane) -> int:
    """Return a lane's process id, once it has started."""
    message = lane.connection.recv(4096, socket.MSG_PEEK)
    return json.loads(message[FRAME_HEADER.size :])["pid"]


@pytest.mark.parametrize(
    ("modules", "number", "taken"), [((), 2, True), (("json",), 2, False), ((), 1, False)]
)
def test_lanes_started_ahead_are_used_or_ended(modules, number, taken):
    pool = Lanes()
    pool.start_expected(modules, number)
    expected = pool.expected
    pool.start_missing([LaneSettings((), (), False, 1, ())] * 2)
    try:
        lanes = [lane for _, lane in pool.idle]
        assert (lanes == expected) == taken
        assert [lane.closed for lane in expected] == [not taken] * number
        assert len({pid_of_lane(lane) for lane in lanes}) == 2
        pool.start_expected(modules, number)
        unused = pool.expected
        pool.end_idle()
        assert all(lane.closed for lane in unused)
    finally:
        pool.end_all()


def test_lanes_share_a_process_and_have_a_core_each(lanes):
    pids = [pid_of_lane(lane) for _, lane in lanes.idle]
    assert len(set(pids)) == 2
    assert [lane.process and lane.process.pid for _, lane in lanes.idle] == [pids[0], None]
    machine = sorted(os.sched_getaffinity(0))
    cores = [psutil.Process(pid).cpu_affinity() for pid in pids]
    assert cores == ([[core] for core in machine] if len(machine) == 2 else [machine] * 2)
    folders = [lane.folder for _, lane in lanes.idle]
    lanes.end_all()
    _, alive = psutil.wait_procs([p for p in map(process_or_none, pids) if p], timeout=60)
    assert alive == []
    assert not any(map(os.path.exists, folders))


KILL_BEFORE_LANES = """
import os, signal
from attncourse.grading.judge import lanes

lanes.subprocess.Popen = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
lanes.start_processes((), 2)
"""


def test_a_driver_killed_before_its_lanes_run_leaves_no_folder(tmp_path):
    """No process would be left to remove it."""
    process = subprocess.run(
        [sys.executable, "-c", KILL_BEFORE_LANES],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        check=False,
    )
    assert process.returncode == -signal.SIGKILL
    assert os.listdir(tmp_path) == []


def test_a_lane_is_closed_once(lanes):
    """A stopped driver's threads give back closed lanes, whose descriptors may be in use again."""
    (key, lane), (_, other_lane) = lanes.idle
    lanes.take(key)
    lanes.end_all()
    occupied_numbers = (
        os.dup(0),
        os.dup(0),
        os.dup(0),
        os.dup(0),
    )  # take the descriptors that were the lanes'
    lanes.give_back(key, lane)
    lanes.end_idle()
    other_lane.close()
    for number in occupied_numbers:
        os.close(number)


def test_a_lane_that_ended_at_its_start_is_recognised():
    """A command would take the broken pipe for its own output's, and end."""
    lane = Lane()
    lane.lane_socket.close()
    lane.send_order(LaneSettings((), (), False, 1, ()), None)
    assert lane.has_ended()
    os.close(lane.lane_lifeline)
    lane.close()


@pytest.mark.parametrize("number", [0, 1])
def test_a_lane_that_ends_while_it_waits_is_not_taken(lanes, number):
    pids = [pid_of_lane(lane) for _, lane in lanes.idle]
    (key, ended), other_lane = lanes.idle[number], lanes.idle[1 - number][1]
    ended.connection.recv(4096)  # the message with its process id
    os.kill(pids[number], signal.SIGKILL)
    assert select.select([ended.connection], [], [], 10)[0]
    assert lanes.take(key) is other_lane
    assert lanes.take(key).core == ended.core
    assert psutil.pid_exists(pids[1 - number])


def process_or_none(pid: int) -> psutil.Process | None:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid)


def test_points_earned_before_the_checker_ends_are_kept():
    """An instructor's test that ends the checker loses its points and those of later tests."""
    last = graded("points_twice", "import os\nos._exit(3)", 4)
    assignment = Assignment("a", (*read_cells(small())[:-1], *read_cells(notebook(last))))
    report, points = report_and_points(small(), assignment)
    assert points == {"points_add": 2, "hidden_add": 0, "points_twice": 0}
    assert report.status == "interrupted"
    assert report.attention
