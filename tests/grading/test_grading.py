"""Grading one submission: what it earns, and what a hostile one cannot spoil."""

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

pytestmark = pytest.mark.from_exec  # it counts the processes below it
LIMITS = Limits(submission=30, cell=2)
SMALL = Assignment(NAME, read_cells(small()))


def graded_points(data: bytes, assignment: Assignment = SMALL, limits: Limits = LIMITS):
    report = grade_submission(data, assignment, limits=limits)
    return report, {name: result.points for name, result in report.cells.items()}


# --- what it earns ----------------------------------------------------------------------------


def test_a_right_submission_earns_everything_and_says_nothing():
    report, points = graded_points(small())
    assert points == {"points_add": 2, "hidden_add": 1, "points_twice": 4}
    assert (report.status, report.notes, report.mistakes) == ("graded", (), ())


def test_an_empty_submission_earns_nothing():
    report, _ = graded_points(small(STUB, STUB))
    assert report.points == 0
    assert report.notes == ("not attempted: add, twice",)


def test_a_failing_cell_costs_itself_alone():
    report, points = graded_points(small(twice="def twice(a):\n    return a +"))
    assert points == {"points_add": 2, "hidden_add": 1, "points_twice": 0}
    assert any(note.startswith("cell twice: SyntaxError") for note in report.notes)
    assert report.cells["points_twice"].message.startswith("its cell ended in SyntaxError: ")


@pytest.mark.parametrize(
    ("answers", "told"),
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
def test_every_exercise_that_lost_points_is_spoken_of_in_a_line(answers, told):
    report, _ = graded_points(small(**answers))
    assert len(report.notes) == len(told)
    assert all(note.startswith(words) for note, words in zip(report.notes, told, strict=True))


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
def test_what_is_no_number_of_points_is_none(outcome):
    result = judge_cell(Cell("", grade_id="t", grade=True, points=3), outcome)
    assert result.points == 0
    assert result.message


def test_mistakes_come_from_the_checks():
    source = 'from attncourse.checks import examine\nexamine("mixing.mix", mix).earned'
    assignment = Assignment("m", (Cell(source, grade_id="points_mix", grade=True, points=50),))
    wrong = notebook(answer("mix", "def mix(A, X):\n    return A.mT @ X"))
    report, _ = graded_points(wrong, assignment)
    assert len(report.mistakes) == 1
    assert report.mistakes[0][0] == "mixing.mix"
    assert report.cells["points_mix"].message == report.mistakes[0][1]
    assert isinstance(report.verdicts[0]["seed"], int)


def test_the_same_submission_gets_the_same_points_again():
    first, again = graded_points(small(add=STUB)), graded_points(small(add=STUB))
    assert first[1] == again[1]
    assert first[0].notes == again[0].notes


# --- submissions that misbehave ---------------------------------------------------------------


def processes() -> int:
    """How many processes this one has below it: lanes, each with its zygote and next worker."""
    return sum(p.status() != "zombie" for p in psutil.Process().children(recursive=True))


LANE = "attncourse.grading.judge.lane"
DEAF = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})"
SWALLOW = dedented("""
    while True:
        try:
            while True: pass
        except BaseException: pass
""")


@pytest.mark.parametrize(
    ("twice", "told"),
    [
        ("while True: pass", "cell twice: did not end within "),
        ("import time\ntime.sleep(100)", "cell twice: did not end within 4 s on the clock"),
        (f"def f():\n    {SWALLOW.replace(chr(10), chr(10) + '    ')}\nf()", "did not end"),
        (f"{DEAF}\nwhile True: pass", "could not be interrupted"),
        ("import os\nos._exit(0)", "ended its process"),
        ("import os, signal\nos.kill(0, signal.SIGKILL)", ""),  # the first of its namespace
        ("import os, signal\nos.kill(-1, signal.SIGKILL)", ""),
        ("print('x' * 50_000_000)", ""),
    ],
)
def test_a_bad_cell_costs_itself_and_keeps_what_others_earn(twice, told):
    limits = Limits(submission=30, cell=0.5)
    graded_points(small(), limits=limits)
    before = processes()
    report, points = graded_points(small(twice=twice), limits=limits)
    assert points == {"points_add": 2, "hidden_add": 1, "points_twice": 0}
    assert any(told in note for note in report.notes) or not told
    killed = "ended its process" in told or "interrupted" in told
    assert report.status == ("interrupted" if killed else "graded")
    assert processes() == before


def test_the_submissions_limit_keeps_what_was_earned_before():
    slow = (graded("points_twice", "import time\ntime.sleep(600)", 4),)
    assignment = Assignment("a", (*read_cells(small())[:-1], *read_cells(notebook(*slow))))
    started = time.monotonic()
    report, points = graded_points(small(), assignment, Limits(submission=1, cell=50))
    assert time.monotonic() - started < 200  # run twice; the sleep, the cell's limit: longer
    assert points == {"points_add": 2, "hidden_add": 1, "points_twice": 0}
    assert report.status == "interrupted"
    assert "time for the submission was over" in report.notes[-1]


def test_what_a_submission_starts_is_ended_with_it():
    mark = f"sleep 98{os.getpid()}"
    source = f"import subprocess\nsubprocess.Popen({mark.split()!r})\n{RIGHT[1]}"
    report, _ = graded_points(small(twice=source))
    assert report.points == 7  # the definitions below what failed are run
    assert "BlockingIOError" in report.notes[0]
    report, _ = graded_points(small(twice=source), limits=Limits(processes=8))
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
    (two / "b.ipynb").write_bytes(small())
    renamed = course / "submitted" / "renamed" / NAME
    renamed.mkdir(parents=True)
    (renamed / "my answers.ipynb").write_bytes(small())
    (renamed / "._my answers.ipynb").write_bytes(b"what a Mac leaves")
    outcome = grade_course(course, NAME, limits=LIMITS)
    found = {r.student: (r.status, r.points) for r in outcome.reports}
    assert found == {
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
    course, did = make_course(tmp_path, one=small(), two=small()), []
    for place, name in ((holding, "launch_lanes"), (folders, "find_assignment")):

        def noted(*asked, name=name, do=getattr(place, name)):
            did.append(name)
            return do(*asked)

        monkeypatch.setattr(place, name, noted)
    monkeypatch.setattr(cli, "end_process", lambda status: None)
    holding.LANES.end_idle()
    asked = {"student": None, "db": None, "force": False, "dask": None, "unsafe": False}
    cli.grade(NAME, jobs=2, timeout=LIMITS.submission, course=course, **asked)
    holding.LANES.end_idle()
    assert did == ["launch_lanes", "find_assignment"]
    reports = (course / "reports" / NAME).glob("[ot]*.json")
    assert [report_from_json(json.loads(r.read_text())).points for r in reports] == [7, 7]


def test_a_lost_title_or_a_note_of_ones_own_changes_nothing():
    extra = notebook(
        cell("# mine", code=False), cell("note = 1"), answer("add", RIGHT[0]), *TESTS[:1]
    )
    _, points = graded_points(extra)
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


def test_nothing_outlives_a_driver_that_is_killed():
    code = ENDLESS_DRIVER.format(tests=os.path.dirname(os.path.dirname(__file__)))
    below: list[psutil.Process] = []
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as driver:
        try:
            assert driver.stdout.readline() == b"go\n"
            until = time.monotonic() + 120
            while len(below) < 4 and time.monotonic() < until:  # lane, zygote, worker, next one
                below = psutil.Process(driver.pid).children(recursive=True)
                time.sleep(0.1)
            assert len(below) >= 4
        finally:
            driver.kill()
    _, alive = psutil.wait_procs(below, timeout=60)
    assert alive == []


def test_a_lane_that_is_killed_is_replaced():
    """Not a submission's doing, so it costs no submission anything."""
    slow = small(twice="import time\ntime.sleep(4)")
    with ThreadPoolExecutor() as pool:
        graded_points(small())
        lanes = [p for p in psutil.Process().children() if LANE in p.cmdline()]
        assert lanes
        running = pool.submit(graded_points, slow, SMALL, Limits(cell=10))
        time.sleep(1)
        for lane in lanes:
            lane.kill()
        report, _ = running.result()
    assert (report.status, report.points) == ("graded", 3)
    assert graded_points(small())[0].points == 7


@pytest.fixture
def lanes():
    """Two lanes that were started together."""
    made = Lanes()
    made.start_missing([LaneSettings((), (), False, 1, ())] * 2)
    yield made
    made.end_all()


def told(lane) -> int:
    """A lane's process id, once it is at work."""
    said = lane.connection.recv(4096, socket.MSG_PEEK)
    return json.loads(said[FRAME_HEADER.size :])["pid"]


@pytest.mark.parametrize(
    ("modules", "number", "taken"), [((), 2, True), (("json",), 2, False), ((), 1, False)]
)
def test_lanes_that_were_started_ahead_are_the_next_or_end(modules, number, taken):
    made = Lanes()
    made.start_expected(modules, number)
    ahead = made.expected
    made.start_missing([LaneSettings((), (), False, 1, ())] * 2)
    try:
        lanes = [lane for _, lane in made.idle]
        assert (lanes == ahead) == taken
        assert [lane.closed for lane in ahead] == [not taken] * number
        assert len({told(lane) for lane in lanes}) == 2
        made.start_expected(modules, number)
        unused = made.expected
        made.end_idle()
        assert all(lane.closed for lane in unused)
    finally:
        made.end_all()


def test_lanes_share_a_process_and_keep_to_a_core_each(lanes):
    pids = [told(lane) for _, lane in lanes.idle]
    assert len(set(pids)) == 2
    assert [lane.process and lane.process.pid for _, lane in lanes.idle] == [pids[0], None]
    machine = sorted(os.sched_getaffinity(0))
    cores = [psutil.Process(pid).cpu_affinity() for pid in pids]
    assert cores == ([[core] for core in machine] if len(machine) == 2 else [machine] * 2)
    folders = [lane.folder for _, lane in lanes.idle]
    lanes.end_all()
    _, alive = psutil.wait_procs([p for p in map(process, pids) if p], timeout=60)
    assert alive == []
    assert not any(map(os.path.exists, folders))


KILLED_BEFORE = """
import os, signal
from attncourse.grading.judge import lanes

lanes.subprocess.Popen = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
lanes.start_processes((), 2)
"""


def test_a_driver_killed_before_its_lanes_run_leaves_no_folder(tmp_path):
    """Nobody would be there to remove one."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED_BEFORE],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert os.listdir(tmp_path) == []


def test_a_lane_is_closed_once(lanes):
    """A stopped driver's threads give back closed lanes, whose numbers may be others' by then."""
    (key, lane), (_, other) = lanes.idle
    lanes.take(key)
    lanes.end_all()
    taken = os.dup(0), os.dup(0), os.dup(0), os.dup(0)  # with the numbers that were the lanes'
    lanes.give_back(key, lane)
    lanes.end_idle()
    other.close()
    for number in taken:
        os.close(number)


def test_a_lane_that_ended_at_its_start_is_gone():
    """A command must not end by the broken pipe, which it would take for its own output's."""
    lane = Lane()
    lane.lane_socket.close()
    lane.send_order(LaneSettings((), (), False, 1, ()), None)
    assert lane.has_ended()
    os.close(lane.lane_lifeline)
    lane.close()


@pytest.mark.parametrize("number", [0, 1])
def test_a_lane_that_ends_while_it_waits_is_not_taken(lanes, number):
    pids = [told(lane) for _, lane in lanes.idle]
    (key, ended), other = lanes.idle[number], lanes.idle[1 - number][1]
    ended.connection.recv(4096)  # what it had said
    os.kill(pids[number], signal.SIGKILL)
    assert select.select([ended.connection], [], [], 10)[0]
    assert lanes.take(key) is other
    assert lanes.take(key).core == ended.core
    assert psutil.pid_exists(pids[1 - number])


def process(pid: int) -> psutil.Process | None:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid)


def test_what_was_earned_before_the_judge_itself_fails_is_kept():
    """A test that ends the checker is the instructor's; it costs itself and what runs after it."""
    last = graded("points_twice", "import os\nos._exit(3)", 4)
    assignment = Assignment("a", (*read_cells(small())[:-1], *read_cells(notebook(last))))
    report, points = graded_points(small(), assignment)
    assert points == {"points_add": 2, "hidden_add": 0, "points_twice": 0}
    assert report.status == "interrupted"
    assert report.attention
