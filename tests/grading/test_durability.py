"""After a killed run the next completes the class: nothing is lost or graded twice."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from attncourse.grading.course.settings import require_nbgrader
from attncourse.grading.judge.lane import end_when_driver_ends
from helpers import forked_commands
from helpers.disturbances import lanes_of
from helpers.journal_records import journal_of, number_of_results, records
from helpers.small_course import NAME, STUB, make_course, small

STUDENTS = 40
MAX_SECONDS = 120.0  # seconds after which something hangs

# Starts drivers, one after the other, by forking, since imports take longest. It writes a driver's
# process id when it has started and its exit status when it has ended.
LAUNCHER_SCRIPT = f"""
import os, sys, tempfile
import nbgrader.api, nbgrader.preprocessors, alembic.script, rich.progress, psutil
from attncourse.grading import cli
from attncourse.grading.driver import command, run as driver, saver

tempfile.gettempdir()  # writes a file to try the folder: killed just then, it would stay there
for line in sys.stdin:
    course, batch = line.rstrip().split("|")
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0), os.dup2(null, 1)
        saver.MAX_BATCH = int(batch)
        sys.argv = ["attncourse", "grade", "{NAME}", "--course", course]
        try:
            cli.main()
        except SystemExit as end:
            os._exit(end.code or 0)
        os._exit(70)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class DriverLauncher:
    """Starts drivers, and kills them when a condition holds."""

    def __init__(self, folder: Path) -> None:
        require_nbgrader()
        self.folder = folder
        self.lanes_seen: set[int] = set()  # lanes whose driver was killed
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER_SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(folder)},
        )

    def drive(self, course: Path, until: Callable[[], bool], batch: int = 500) -> int:
        """Start a driver, kill it as soon as ``until`` holds, and return its exit status."""
        self.process.stdin.write(f"{course}|{batch}\n")
        self.process.stdin.flush()
        driver = int(self.process.stdout.readline())
        start = time.monotonic()
        lanes: set[int] = set()
        while is_running(driver) and time.monotonic() - start < MAX_SECONDS:
            if until():
                lanes = lanes_of(driver)
                self.lanes_seen |= lanes
                os.kill(driver, signal.SIGKILL)
                break
            time.sleep(0.0005)
        status = int(self.process.stdout.readline())
        assert wait_for(lambda: not any(is_running(pid) for pid in lanes)), "a lane lives on"
        assert wait_for(lambda: not os.listdir(self.folder)), list(self.folder.rglob("*"))
        return status

    def close(self) -> None:
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(MAX_SECONDS)


@pytest.fixture(scope="module")
def launcher(tmp_path_factory) -> Iterator[DriverLauncher]:
    started = DriverLauncher(tmp_path_factory.mktemp("lanes"))
    yield started
    started.close()


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for(condition: Callable[[], bool], seconds: float = MAX_SECONDS) -> bool:
    """Return True once the condition holds, False if it does not within this time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def condition_after(seconds: float) -> Callable[[], bool]:
    """Return a condition that holds from this time after its first call."""
    since: list[float] = []

    def reached() -> bool:
        since.append(time.monotonic())
        return since[-1] - since[0] >= seconds

    return reached


def make_large_class(folder: Path) -> dict[str, float]:
    """Make a course with a class of forty, and return their points."""
    points, answers = {}, {}
    for n in range(STUDENTS):
        kind = n % 4
        right = f"def add(a, b):\n    return a + b + {n} * 0"
        answers[f"s{n:02}"] = (
            small(add=right),
            small(add=right, twice=STUB),
            small(add=f"def add(a, b):\n    return {n} * 0"),
            b'{"cells": [\n' + b" " * n,
        )[kind]
        points[f"s{n:02}"] = (7.0, 3.0, 5.0, 0.0)[kind]
    make_course(folder, **answers)
    (folder / "submitted" / "absent").mkdir()
    return points


def run_grade(course: Path, *options: str, **more: str) -> subprocess.CompletedProcess:
    return forked_commands.run("grade", NAME, *options, cwd=course, **more)


def points_in_gradebook(course: Path) -> dict[str, float]:
    """Return each student's points in the gradebook."""
    query = (
        "select s.student_id, sum(g.auto_score), count(*) from submitted_assignment s "
        "join submitted_notebook n on n.assignment_id = s.id "
        "join grade g on g.notebook_id = n.id group by s.student_id"
    )
    with closing(sqlite3.connect(course / "gradebook.db")) as connection:
        rows = list(connection.execute(query))
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
    assert {count for _, _, count in rows} <= {3}
    return {student: points for student, points, _ in rows}


def assert_complete(course: Path, points: dict[str, float]) -> None:
    """Assert that gradebook, journal, reports and notebooks hold each student once."""
    assert points_in_gradebook(course) == points
    results = records(course)
    assert Counter(record["student"] for record in results) == Counter(dict.fromkeys(points, 1))
    assert len({record["key"] for record in results}) == len(points)
    reports = {
        p.stem: json.loads(p.read_text()) for p in (course / "reports" / NAME).glob("*.json")
    }
    earned = {
        student: sum(cell["points"] for cell in report["cells"].values())
        for student, report in reports.items()
    }
    assert earned == points | {"absent": 0.0}
    notebooks = list((course / "autograded").glob(f"*/{NAME}/{NAME}.ipynb"))
    assert {path.parent.parent.name for path in notebooks} == set(points)
    assert all(json.loads(path.read_text())["cells"] for path in notebooks)
    suffixes = ("-journal", "-wal", "-shm")
    leftover_files = [
        p for p in course.rglob("*") if p.name.startswith(".") or p.name.endswith(suffixes)
    ]
    assert leftover_files == []
    assert {p.name for p in course.iterdir()} == {
        *("solutions", "exercises", "submitted"),
        *("autograded", "reports", "gradebook.db"),
    }


def assert_no_partial_files(course: Path) -> None:
    """Assert that each file of a killed driver is complete or absent."""
    for path in (*course.glob("reports/*/*.json"), *course.glob("autograded/*/*/*.ipynb")):
        if not path.name.startswith("."):
            assert json.loads(path.read_text()), path
    if (course / "gradebook.db").exists():
        with closing(sqlite3.connect(course / "gradebook.db")) as connection:
            assert connection.execute("select count(*) from alembic_version").fetchone() == (1,)
            query = (
                "select count(*) from submitted_assignment s where (select count(*) from grade g "
                "join submitted_notebook n on n.id = g.notebook_id where n.assignment_id = s.id "
                "and g.auto_score is not null) <> 3"
            )
            assert connection.execute(query).fetchone() == (0,)


# --- kill -9 ------------------------------------------------------------------------------------


def test_a_lane_leaves_no_folder_of_a_busy_zygote(tmp_path):
    """The lane ends itself as if its driver had just been killed, while its zygote writes files."""
    folder, (lifeline, driver) = tmp_path / "lane", os.pipe()
    zygote = os.fork()
    if zygote == 0:
        os.close(driver)
        end = time.monotonic() + MAX_SECONDS
        while time.monotonic() < end:
            with suppress(OSError):
                (folder / "view" / str(random.randrange(99))).mkdir(parents=True)
        os._exit(0)
    assert wait_for(folder.exists)
    os.close(driver)
    process = os.fork()
    if process == 0:
        end_when_driver_ends(lifeline, zygote, str(folder))
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 1
    assert os.waitstatus_to_exitcode(os.waitpid(zygote, 0)[1]) == -signal.SIGKILL
    os.close(lifeline)
    assert not folder.exists()


@pytest.mark.slow
def test_killed_at_any_moment_the_next_run_completes_the_class(launcher, tmp_path, record_property):
    generator = random.Random(3)
    kills, numbers_of_results = 0, []
    for number, batch in enumerate((500, 7, 1)):
        course = tmp_path / f"course-{number}"
        points = make_large_class(course)
        moments = [condition_after(generator.uniform(0, 0.3))]
        for count in sorted(generator.sample(range(1, STUDENTS), 4)):
            moments.append(condition_after_results(course, count, generator.uniform(0, 0.03)))
        for until in moments:
            kills += launcher.drive(course, until, batch) == -signal.SIGKILL
            numbers_of_results.append(number_of_results(course))
            assert_no_partial_files(course)
        assert launcher.drive(course, lambda: False, batch) == 0
        assert_complete(course, points)
    record_property(
        "summary",
        f"kill -9 at random moments: {kills}, with {numbers_of_results} results in the journal",
    )
    assert kills >= 12
    assert len(set(numbers_of_results)) >= 8
    assert len(launcher.lanes_seen) >= 12, "of most drivers that were killed a lane was met"


def condition_after_results(course: Path, count: int, seconds: float) -> Callable[[], bool]:
    """Return a condition that holds from this time after there are ``count`` results."""
    since: list[float] = []

    def reached() -> bool:
        if not since and number_of_results(course) >= count:
            since.append(time.monotonic())
        return bool(since) and time.monotonic() - since[0] >= seconds

    return reached


@pytest.mark.slow
def test_after_a_kill_the_next_run_completes_the_class(launcher, tmp_path, record_property):
    points = make_large_class(tmp_path)
    reports, autograded = tmp_path / "reports" / NAME, tmp_path / "autograded"
    moments = {
        "the first gradebook": lambda: (tmp_path / ".gradebook.db.new").exists(),
        "the journal": lambda: journal_of(tmp_path).exists(),
        "results arriving": lambda: number_of_results(tmp_path) > 3,
        "the first report": lambda: (reports / "s00.json").exists(),
        "half of the notebooks": lambda: (autograded / "s20").exists(),
        "the last report": lambda: (reports / "s39.json").exists(),
        "the transaction": lambda: (tmp_path / "gradebook.db-journal").exists(),
        "the transaction, later": lambda: size_or_zero(tmp_path / "gradebook.db-journal") > 4096,
        "a notebook being written": lambda: any(autograded.glob(f"*/{NAME}/.*.new")),
    }
    killed = []
    for moment, until in moments.items():
        if launcher.drive(tmp_path, until) == -signal.SIGKILL:
            killed.append(moment)
        assert_no_partial_files(tmp_path)
    process = run_grade(tmp_path)
    assert (process.returncode, process.stderr) == (0, "")
    assert_complete(tmp_path, points)
    record_property("summary", f"kill -9 while writing: {len(killed)} ({', '.join(killed)})")
    assert len(killed) >= 6


def size_or_zero(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def test_a_second_driver_is_refused_and_the_first_goes_on(launcher, tmp_path):
    make_course(tmp_path, ada=small(add="import time\ntime.sleep(3)"))
    second_runs = []

    def start_second_driver() -> bool:
        if journal_of(tmp_path).exists() and not second_runs:
            second_runs.append(run_grade(tmp_path))
        return False

    assert launcher.drive(tmp_path, start_second_driver) == 0
    assert second_runs[0].returncode == 2
    assert "is being graded already, by process" in second_runs[0].stderr
    assert points_in_gradebook(tmp_path) == {"ada": 4}
