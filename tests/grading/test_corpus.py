"""The corpus of hostile, damaged and unusual submissions: each gets exactly its points."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from socket import SOCK_DGRAM

import pytest

from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.judge.wire.encoding import Encoder
from attncourse.grading.judge.worker.loop import Worker
from attncourse.grading.limits import Limits
from attncourse.grading.submission.notebook import Assignment, read_cells
from corpus.assignment import MARK, MIXING, PORT, WORKS, Hostile, Work, keeps
from corpus.course import lost, make_course, scores, unearned
from corpus.hostile import DAMAGE, HONEST, HOSTILE
from corpus.wire import ENCODER_NAMES, WORKER_NAMES
from helpers import forked_commands
from helpers.project import ROOT

ALL_CASES = HOSTILE + DAMAGE + HONEST  # the damaged have tests of their own, too: test_damaged.py
pytestmark = pytest.mark.from_exec
LIMITS = Limits(submission=30, cell=8, call=8, cpu=30, memory=1000, disk=16, message=32)
SHORT_LIMITS = replace(LIMITS, submission=10, cell=0.25, call=0.25, cpu=5, grace=0.5)
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
ABSTRACT_ADDRESS = "\0" + MARK
SECRET_ENVIRONMENT = {"MIX_ANSWER": MIXING.right["mix"]}
ASSIGNMENTS = {id(work): Assignment(work.name, read_cells(work.source)) for work in WORKS}

CENTER_IN_JAIL = f"""
import os
def center(x):
    assert os.getuid() != 0 and os.getpid() < 10, "runs as somebody else"
    assert not os.path.exists("{ROOT / "tests"}"), "sees the repository"
    return np.asarray(x) - np.mean(x, axis=-1, keepdims=True)
"""


@pytest.fixture(scope="module")
def listening():
    """Listen for submissions that reach this machine; nothing may arrive."""
    tcp, udp = (socket.socket(socket.AF_INET, kind) for kind in (socket.SOCK_STREAM, SOCK_DGRAM))
    abstract = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listeners = []
    for listener, address in (
        (tcp, ("127.0.0.1", PORT)),
        (udp, ("127.0.0.1", PORT)),
        (abstract, ABSTRACT_ADDRESS),
    ):
        with suppress(OSError):  # another run of these tests listens there
            listener.bind(address)
            listeners.append(listener)
    for listener in listeners:
        listener.setblocking(False)
        if listener is not udp:
            listener.listen()
    yield listeners
    for listener in (tcp, udp, abstract):
        listener.close()


@pytest.fixture(scope="module", autouse=True)
def jailed():
    """Run nothing hostile unless a harmless submission has found itself in the jail."""
    case = keeps("honest", "locked-in", "", center=CENTER_IN_JAIL)
    try:
        report = grade_submission(case.notebook(), ASSIGNMENTS[id(case.work)], limits=LIMITS)
    except Exception as problem:
        pytest.skip(f"no jail on this machine: {problem}")
    assert report.sandbox
    assert report.cells["points_center"].points == 2, report.cells["points_center"].message


def test_attacks_look_for_names_that_a_worker_has():
    """An attack on a name that was renamed would try nothing, and its test would pass."""
    worker, encoder = Worker(None, 0, {}), Encoder(repr)
    assert [name for name in WORKER_NAMES if not hasattr(worker, name)] == []
    assert [name for name in ENCODER_NAMES if not hasattr(encoder, name)] == []
    sources = "\n".join(text for case in HOSTILE for text in case.answers.values())
    assert all(name in sources for name in (*WORKER_NAMES, *ENCODER_NAMES))


# --- a class of all ----------------------------------------------------------------------------


@dataclass
class Term:
    """Results of classes in which every case hands in, and what was left on this machine.

    ``points`` and ``reports`` are by (number of the work, student).
    """

    points: dict[tuple[int, str], dict[str, float]] = field(default_factory=dict)
    reports: dict[tuple[int, str], dict] = field(default_factory=dict)
    unexpected: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def term(tmp_path_factory, listening) -> Term:
    """Grade the classes: cases that run into a limit have short limits."""
    results, before = Term(), modification_times()
    folder = tmp_path_factory.mktemp(
        "term"
    )  # here, since the factory is not safe to use from two threads
    classes = [  # the slow first, since they mostly wait for their limits
        (number, work, slow)
        for slow in (True, False)
        for number, work in enumerate(WORKS)
        if students(work, slow)
    ]

    def grade_one_class(class_to_grade: tuple[int, Work, bool]) -> None:
        number, work, slow = class_to_grade
        class_folder = folder / f"{number}-{work.name}{'-slow' * slow}" / "course"
        course = make_course(class_folder, work, students(work, slow).items())
        grade_class(course, work, SHORT_LIMITS if slow else LIMITS, results.unexpected)
        for student, points in scores(course, work).items():
            report = course / "reports" / work.name / f"{student}.json"
            results.points[number, student] = points
            results.reports[number, student] = json.loads(report.read_text("utf-8"))

    with ThreadPoolExecutor(2) as pool:  # each grades in a process of its own
        list(pool.map(grade_one_class, classes))
    results.unexpected += [f"still runs: {process}" for process in processes_left_running()]
    after = modification_times()
    results.unexpected += [
        f"changed: {path}" for path, when in after.items() if before.get(path) != when
    ]
    results.unexpected += [f"left behind: {path}" for path in files_with_mark()]
    results.unexpected += [f"reached: {wire}" for wire in listening if has_received(wire)]
    return results


def students(work: Work, slow: bool) -> dict[str, Hostile]:
    """Return each case as a student, twice where it asks, with an honest one after the hostile."""
    case_by_student: dict[str, Hostile] = {}
    for case in (case for case in ALL_CASES if case.work is work and case.slow is slow):
        case_by_student[f"{case.name}-0"] = case
        if case.again:
            case_by_student[f"{case.name}-1"] = case
        if case in HOSTILE:
            case_by_student[f"{case.name}-9-beside"] = keeps("honest", "beside", "", work=work)
    return case_by_student


def grade_class(course: Path, work: Work, limits: Limits, unexpected: list[str]) -> None:
    """Release and grade with a secret in the environment, and list unexpected files."""
    grading = f"""
import sys
from pathlib import Path
from attncourse.grading.driver.command import grade_course
from attncourse.grading.limits import Limits
sys.path.append({str(ROOT / "tests")!r})
from helpers.seeding import settle
settle()
grade_course(Path({str(course)!r}), {work.name!r}, limits={limits!r})
"""
    process = forked_commands.run("release", work.name, cwd=course)
    assert process.returncode == 0, process.stderr
    handed_in = snapshot(course)
    command, environment = [sys.executable, "-c", grading], os.environ | SECRET_ENVIRONMENT
    process = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    files_after = snapshot(course)
    unexpected += [
        f"changed: {path}" for path, text in handed_in.items() if files_after.get(path) != text
    ]
    written = {path.split("/")[0] for path in files_after.keys() - handed_in.keys()}
    unexpected += [f"written: {folder}" for folder in written - {"autograded", "reports"}]


@pytest.mark.slow
@pytest.mark.parametrize("case", ALL_CASES, ids=lambda case: f"{case.kind}-{case.name}")
def test_each_case_gets_its_points(case: Hostile, term):
    number = next(i for i, work in enumerate(WORKS) if work is case.work)
    for suffix in ("-0", "-1") if case.again else ("-0",):
        points = term.points[number, case.name + suffix]
        report = term.reports[number, case.name + suffix]
        assert points == case.deserves, (wrong_points(case, points), report["notes"])
        assert case.damage or report["status"] == "graded" or report["attention"]
        report_texts = list(strings_in(report))
        assert [text for text in report_texts if UNPRINTABLE.search(text)] == []
        assert [text for text in report_texts if "overheard" in text and "3x5" in text] == []


@pytest.mark.slow
def test_cases_change_no_others_points_and_leave_nothing(term, record_property):
    assert not term.unexpected, "\n".join(term.unexpected[:50])
    counts = {"cases": 0, "unearned": 0.0, "lost": 0.0}
    for number, work in enumerate(WORKS):
        everyone = students(work, False) | students(work, True)
        points_by_student = {
            student: points for (n, student), points in term.points.items() if n == number
        }
        assert points_by_student.keys() == everyone.keys()
        counts["cases"] += sum(case.name != "beside" for case in everyone.values())
        counts["unearned"] += sum(
            unearned(everyone[s], earned) for s, earned in points_by_student.items()
        )
        counts["lost"] += sum(lost(everyone[s], earned) for s, earned in points_by_student.items())
        beside = {s: earned for s, earned in points_by_student.items() if s.endswith("-9-beside")}
        assert {s: earned for s, earned in beside.items() if earned != everyone[s].deserves} == {}
    record_property(
        "summary",
        f"corpus: {counts['cases']} cases, unearned credit {counts['unearned']:g}, "
        f"lost credit {counts['lost']:g}, {len(term.points)} rows, nothing left behind",
    )


def strings_in(value) -> Iterator[str]:
    """Yield all strings in plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from strings_in([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings_in(item)


def test_the_corpus_has_enough_cases_with_unique_names():
    assert len({case.name for case in ALL_CASES}) == len(ALL_CASES)
    assert len(HOSTILE) >= 80
    assert len(HONEST) >= 12
    assert {case.kind for case in HOSTILE} == {
        *("forging", "spying", "escaping", "exhausting", "wire")
    }


def wrong_points(case: Hostile, points: dict[str, float]) -> str:
    """Return the cells whose points are not what they should be, as text."""
    wrong = {cell for cell in points if points[cell] != case.deserves[cell]}
    return ", ".join(
        f"{cell} {points[cell]:g} not {case.deserves[cell]:g}" for cell in sorted(wrong)
    )


def snapshot(folder: Path) -> dict[str, bytes]:
    """Return the contents of every file below a folder, but for the gradebook."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.parent / path.stem != folder / "gradebook"
    }


def modification_times() -> dict[str, int]:
    """Return when each file of the repository was last changed."""
    names = ("attncourse", "book", "exercises", "solutions", "tests", "tools", ".github")
    paths = [*ROOT.iterdir(), *(path for name in names for path in (ROOT / name).rglob("*"))]
    files = [path for path in paths if path.is_file() and "__pycache__" not in path.parts]
    return {str(path): path.stat().st_mtime_ns for path in files}


def files_with_mark() -> list[str]:
    """Return files with the mark in their name, wherever a submission might have put one."""
    folders = [Path(p) for p in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/", "/etc")]
    folders += [Path.home(), ROOT, ROOT / "tests", ROOT / "attncourse", Path(sys.prefix)]
    paths = [str(p) for folder in folders for p in folder.glob(f"*{MARK}*")]
    folders_with_subfolders = [
        Path.home() / ".ipython",
        Path.home() / ".config",
        Path(sys.prefix) / "lib",
    ]
    return paths + [str(p) for folder in folders_with_subfolders for p in folder.rglob(f"*{MARK}*")]


def has_received(wire: socket.socket) -> bool:
    try:
        wire.recv(1) if wire.type == SOCK_DGRAM else wire.accept()
    except BlockingIOError:
        return False
    return True


def processes_left_running() -> list[str]:
    """Return processes in a namespace of their own whose lane is gone, or with the mark.

    A process that is just being taken away gets a moment.
    """
    for _ in range(600):
        processes = [
            process
            for process in map(description_of_orphan, Path("/proc").glob("[0-9]*"))
            if process
        ]
        if not processes:
            return []
        time.sleep(0.1)
    return processes


def description_of_orphan(process: Path) -> str:
    """Return name and command of a process that should have ended, "" for any other."""
    try:
        status = dict(
            line.split(":\t", 1) for line in (process / "status").read_text().splitlines()
        )
        command = (process / "cmdline").read_text().replace("\0", " ")
        in_other_namespace = os.readlink(process / "ns/pid") != os.readlink("/proc/self/ns/pid")
    except (OSError, ValueError):
        return ""
    if "VmSize" not in status:  # it has ended, and waits to be taken away
        return ""
    orphan = in_other_namespace and status["PPid"] == "1"
    return f"{status['Name']} {command}" if orphan or MARK in status["Name"] + command else ""
