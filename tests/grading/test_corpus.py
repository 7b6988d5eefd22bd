"""The corpus of hostile, damaged and unusual submissions: each gets what it deserves, no more."""

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

EVERYTHING = HOSTILE + DAMAGE + HONEST  # the damaged have tests of their own, too: test_damaged.py
pytestmark = pytest.mark.from_exec
LIMITS = Limits(submission=30, cell=8, call=8, cpu=30, memory=1000, disk=16, message=32)
TIGHT = replace(LIMITS, submission=10, cell=0.25, call=0.25, cpu=5, grace=0.5)
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
HERE = "\0" + MARK
SECRET = {"MIX_ANSWER": MIXING.right["mix"]}
ASSIGNMENTS = {id(work): Assignment(work.name, read_cells(work.source)) for work in WORKS}

LOCKED_IN = f"""
import os
def center(x):
    assert os.getuid() != 0 and os.getpid() < 10, "runs as somebody else"
    assert not os.path.exists("{ROOT / "tests"}"), "sees the repository"
    return np.asarray(x) - np.mean(x, axis=-1, keepdims=True)
"""


@pytest.fixture(scope="module")
def listening():
    """What hears from submissions that reach this machine: to be silent in the end."""
    tcp, udp = (socket.socket(socket.AF_INET, kind) for kind in (socket.SOCK_STREAM, SOCK_DGRAM))
    abstract = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    waiting = []
    for wire, address in ((tcp, ("127.0.0.1", PORT)), (udp, ("127.0.0.1", PORT)), (abstract, HERE)):
        with suppress(OSError):  # another run of these tests listens there
            wire.bind(address)
            waiting.append(wire)
    for wire in waiting:
        wire.setblocking(False)
        if wire is not udp:
            wire.listen()
    yield waiting
    for wire in (tcp, udp, abstract):
        wire.close()


@pytest.fixture(scope="module", autouse=True)
def jailed():
    """Nothing hostile runs before a harmless submission has found itself locked in."""
    case = keeps("honest", "locked-in", "", center=LOCKED_IN)
    try:
        report = grade_submission(case.notebook(), ASSIGNMENTS[id(case.work)], limits=LIMITS)
    except Exception as problem:
        pytest.skip(f"no jail on this machine: {problem}")
    assert report.sandbox
    assert report.cells["points_center"].points == 2, report.cells["points_center"].message


def test_attacks_look_for_names_that_a_worker_has():
    """One that looks for a name which was changed tries nothing, and passes."""
    worker, encoder = Worker(None, 0, {}), Encoder(repr)
    assert [name for name in WORKER_NAMES if not hasattr(worker, name)] == []
    assert [name for name in ENCODER_NAMES if not hasattr(encoder, name)] == []
    sources = "\n".join(text for case in HOSTILE for text in case.answers.values())
    assert all(name in sources for name in (*WORKER_NAMES, *ENCODER_NAMES))


# --- a class of all ----------------------------------------------------------------------------


@dataclass
class Term:
    """What became of classes in which every case hands in, and of this machine meanwhile.

    ``points`` and ``reports`` are by (number of the work, student).
    """

    points: dict[tuple[int, str], dict[str, float]] = field(default_factory=dict)
    reports: dict[tuple[int, str], dict] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def term(tmp_path_factory, listening) -> Term:
    """The classes, graded: the quick cases, and those that run into a limit with short ones."""
    found, before = Term(), files_that_matter()
    folder = tmp_path_factory.mktemp("term")  # here: it is not to be asked by two threads at once
    classes = [  # the slow first: they wait for their limits most of the time
        (number, work, slow)
        for slow in (True, False)
        for number, work in enumerate(WORKS)
        if students(work, slow)
    ]

    def graded(one: tuple[int, Work, bool]) -> None:
        number, work, slow = one
        place = folder / f"{number}-{work.name}{'-slow' * slow}" / "course"
        course = make_course(place, work, students(work, slow).items())
        grade_class(course, work, TIGHT if slow else LIMITS, found.left)
        for student, points in scores(course, work).items():
            report = course / "reports" / work.name / f"{student}.json"
            found.points[number, student] = points
            found.reports[number, student] = json.loads(report.read_text("utf-8"))

    with ThreadPoolExecutor(2) as two:  # each grades in a process of its own
        list(two.map(graded, classes))
    found.left += [f"still runs: {process}" for process in left_running()]
    after = files_that_matter()
    found.left += [f"changed: {path}" for path, when in after.items() if before.get(path) != when]
    found.left += [f"left behind: {path}" for path in traces()]
    found.left += [f"reached: {wire}" for wire in listening if heard(wire)]
    return found


def students(work: Work, slow: bool) -> dict[str, Hostile]:
    """Every case as a student, its twin where it has one, an honest student after the hostile."""
    found: dict[str, Hostile] = {}
    for case in (case for case in EVERYTHING if case.work is work and case.slow is slow):
        found[f"{case.name}-0"] = case
        if case.again:
            found[f"{case.name}-1"] = case
        if case in HOSTILE:
            found[f"{case.name}-9-beside"] = keeps("honest", "beside", "", work=work)
    return found


def grade_class(course: Path, work: Work, limits: Limits, left: list[str]) -> None:
    """Releases and grades, with a secret in the environment; the files that are not to be there."""
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
    done = forked_commands.run("release", work.name, cwd=course)
    assert done.returncode == 0, done.stderr
    handed_in = snapshot(course)
    command, environment = [sys.executable, "-c", grading], os.environ | SECRET
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    kept = snapshot(course)
    left += [f"changed: {path}" for path, text in handed_in.items() if kept.get(path) != text]
    written = {path.split("/")[0] for path in kept.keys() - handed_in.keys()}
    left += [f"written: {folder}" for folder in written - {"autograded", "reports"}]


@pytest.mark.slow
@pytest.mark.parametrize("case", EVERYTHING, ids=lambda case: f"{case.kind}-{case.name}")
def test_it_gets_what_it_deserves(case: Hostile, term):
    number = next(i for i, work in enumerate(WORKS) if work is case.work)
    for end in ("-0", "-1") if case.again else ("-0",):
        points = term.points[number, case.name + end]
        report = term.reports[number, case.name + end]
        assert points == case.deserves, (differences(case, points), report["notes"])
        assert case.damage or report["status"] == "graded" or report["attention"]
        told = list(texts(report))
        assert [text for text in told if UNPRINTABLE.search(text)] == []
        assert [text for text in told if "overheard" in text and "3x5" in text] == []


@pytest.mark.slow
def test_nobody_beside_them_loses_or_gains_and_nothing_is_left(term, record_property):
    assert not term.left, "\n".join(term.left[:50])
    counts = {"cases": 0, "unearned": 0.0, "lost": 0.0}
    for number, work in enumerate(WORKS):
        everyone = students(work, False) | students(work, True)
        found = {student: points for (n, student), points in term.points.items() if n == number}
        assert found.keys() == everyone.keys()
        counts["cases"] += sum(case.name != "beside" for case in everyone.values())
        counts["unearned"] += sum(unearned(everyone[s], got) for s, got in found.items())
        counts["lost"] += sum(lost(everyone[s], got) for s, got in found.items())
        beside = {s: got for s, got in found.items() if s.endswith("-9-beside")}
        assert {s: got for s, got in beside.items() if got != everyone[s].deserves} == {}
    record_property(
        "summary",
        f"corpus: {counts['cases']} cases, unearned credit {counts['unearned']:g}, "
        f"lost credit {counts['lost']:g}, {len(term.points)} rows, nothing left behind",
    )


def texts(value) -> Iterator[str]:
    """All strings in plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from texts([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts(item)


def test_names_are_unique_and_there_are_enough():
    assert len({case.name for case in EVERYTHING}) == len(EVERYTHING)
    assert len(HOSTILE) >= 80
    assert len(HONEST) >= 12
    assert {case.kind for case in HOSTILE} == {
        *("forging", "spying", "escaping", "exhausting", "wire")
    }


def differences(case: Hostile, got: dict[str, float]) -> str:
    """The cells whose points are not what they should be."""
    wrong = {cell for cell in got if got[cell] != case.deserves[cell]}
    return ", ".join(f"{cell} {got[cell]:g} not {case.deserves[cell]:g}" for cell in sorted(wrong))


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, but for the gradebook."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.parent / path.stem != folder / "gradebook"
    }


def files_that_matter() -> dict[str, int]:
    """When each file of the repository was last changed; its root's, and those of its folders."""
    names = ("attncourse", "book", "exercises", "solutions", "tests", "tools", ".github")
    paths = [*ROOT.iterdir(), *(path for name in names for path in (ROOT / name).rglob("*"))]
    files = [path for path in paths if path.is_file() and "__pycache__" not in path.parts]
    return {str(path): path.stat().st_mtime_ns for path in files}


def traces() -> list[str]:
    """Files that bear the mark, wherever a submission might have put one."""
    folders = [Path(p) for p in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/", "/etc")]
    folders += [Path.home(), ROOT, ROOT / "tests", ROOT / "attncourse", Path(sys.prefix)]
    found = [str(p) for folder in folders for p in folder.glob(f"*{MARK}*")]
    deeper = [Path.home() / ".ipython", Path.home() / ".config", Path(sys.prefix) / "lib"]
    return found + [str(p) for folder in deeper for p in folder.rglob(f"*{MARK}*")]


def heard(wire: socket.socket) -> bool:
    try:
        wire.recv(1) if wire.type == SOCK_DGRAM else wire.accept()
    except BlockingIOError:
        return False
    return True


def left_running() -> list[str]:
    """Processes in a namespace of their own whose lane is gone, and any that bear the mark.

    A process that is just being taken away gets a moment.
    """
    for _ in range(600):
        found = [process for process in map(describe, Path("/proc").glob("[0-9]*")) if process]
        if not found:
            return []
        time.sleep(0.1)
    return found


def describe(process: Path) -> str:
    """The process's name and command where it should not be there any more."""
    try:
        status = dict(
            line.split(":\t", 1) for line in (process / "status").read_text().splitlines()
        )
        command = (process / "cmdline").read_text().replace("\0", " ")
        apart = os.readlink(process / "ns/pid") != os.readlink("/proc/self/ns/pid")
    except (OSError, ValueError):
        return ""
    if "VmSize" not in status:  # it has ended, and waits to be taken away
        return ""
    orphan = apart and status["PPid"] == "1"
    return f"{status['Name']} {command}" if orphan or MARK in status["Name"] + command else ""
