"""The corpus of hostile, damaged and unusual submissions: each gets what it deserves, no more."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from socket import SOCK_DGRAM

import pytest
from conftest import ROOT
from corpus.assignment import MARK, MIXING, PORT, WORKS, Hostile, Work, keeps
from corpus.course import lost, make_course, scores, unearned
from corpus.hostile import DAMAGE, HONEST, HOSTILE

from attncourse.grading.judge.judge import grade
from attncourse.grading.limits import Limits
from attncourse.grading.report import to_json
from attncourse.grading.submission.notebook import Assignment, read_cells

CASES = HOSTILE + HONEST  # what is merely damaged has tests of its own: test_damaged.py
LIMITS = Limits(submission=30, cell=8, call=8, cpu=30, memory=1000, disk=16, message=32)
TIGHT = Limits(submission=20, cell=1, call=1, cpu=10, memory=1000, disk=16, message=32)
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


def parameter(case: Hostile):
    marks = [pytest.mark.slow] if case.slow else []
    return pytest.param(case, id=f"{case.kind}-{case.name}", marks=marks)


@pytest.fixture(scope="module", autouse=True)
def jailed():
    """Nothing hostile runs before a harmless submission has found itself locked in."""
    try:
        report = graded(keeps("honest", "locked-in", "", center=LOCKED_IN))
    except Exception as problem:
        pytest.skip(f"no jail on this machine: {problem}")
    assert report.sandbox
    assert report.cells["points_center"].points == 2, report.cells["points_center"].message


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


def graded(case: Hostile):
    limits = TIGHT if case.slow else LIMITS
    return grade(case.notebook(), ASSIGNMENTS[id(case.work)], limits=limits)


@pytest.mark.parametrize("case", [parameter(case) for case in CASES])
def test_it_gets_what_it_deserves(case: Hostile, monkeypatch, listening):
    if case.link:
        pytest.skip("a link is found in a folder: see the class below")
    for name, value in SECRET.items():
        monkeypatch.setenv(name, value)
    for _ in range(2 if case.again else 1):
        report = graded(case)
        points = {grade_id: cell.points for grade_id, cell in report.cells.items()}
        assert points == case.deserves, (differences(case, points), report.notes)
        assert report.status == "graded" or report.attention
        told = list(texts(to_json(report)))
        assert [text for text in told if UNPRINTABLE.search(text)] == []
        assert [text for text in told if "overheard" in text and "3x5" in text] == []


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
    everything = HOSTILE + DAMAGE + HONEST
    assert len({case.name for case in everything}) == len(everything)
    assert len(HOSTILE) >= 80
    assert len(HONEST) >= 12
    assert {case.kind for case in HOSTILE} == {
        *("forging", "spying", "escaping", "exhausting", "wire")
    }


# --- a whole class -----------------------------------------------------------------------------


def students(work: Work) -> dict[str, Hostile]:
    """Every case as a student, its twin where it has one, and an honest student after each."""
    found: dict[str, Hostile] = {}
    for case in (case for case in HOSTILE + DAMAGE + HONEST if case.work is work):
        found[f"{case.name}-0"] = case
        if case.again:
            found[f"{case.name}-1"] = case
        found[f"{case.name}-9-beside"] = keeps("honest", "beside", "", work=work)
    return found


@pytest.mark.slow
def test_a_class_of_all_is_graded_and_nothing_is_left(tmp_path, record_property, listening):
    before = files_that_matter()
    problems: list[str] = []
    counts = {"cases": 0, "unearned": 0.0, "lost": 0.0, "rows": 0}
    for number, work in enumerate(WORKS):
        everyone = students(work)
        course = make_course(tmp_path / str(number), work, everyone.items())
        assert command(course, "release", work.name).returncode == 0
        handed_in = snapshot(course)
        done = command(course, "grade", work.name, "--timeout", "20")
        assert done.returncode == 0, done.stderr
        found = scores(course, work)
        assert found.keys() == everyone.keys()
        wrong = {s: got for s, got in found.items() if got != everyone[s].deserves}
        problems += [f"{s}: {differences(everyone[s], got)}" for s, got in wrong.items()]
        counts["cases"] += sum(case.name != "beside" for case in everyone.values())
        counts["rows"] += len(found)
        counts["unearned"] += sum(unearned(everyone[s], got) for s, got in wrong.items())
        counts["lost"] += sum(lost(everyone[s], got) for s, got in wrong.items())
        kept = snapshot(course)
        assert handed_in.items() <= kept.items()
        written = {path.split("/")[0] for path in kept.keys() - handed_in.keys()}
        assert written == {"autograded", "reports"}
    problems += [f"still runs: {process}" for process in left_running()]
    problems += [
        f"changed: {p}" for p, when in files_that_matter().items() if before.get(p) != when
    ]
    problems += [f"left behind: {path}" for path in traces()]
    problems += [f"reached: {wire}" for wire in listening if heard(wire)]
    assert not problems, "\n".join(problems[:50])
    record_property(
        "summary",
        f"corpus: {counts['cases']} cases, unearned credit {counts['unearned']:g}, "
        f"lost credit {counts['lost']:g}, {counts['rows']} rows, nothing left behind",
    )


def differences(case: Hostile, got: dict[str, float]) -> str:
    """The cells whose points are not what they should be."""
    wrong = {cell for cell in got if got[cell] != case.deserves[cell]}
    return ", ".join(f"{cell} {got[cell]:g} not {case.deserves[cell]:g}" for cell in sorted(wrong))


def command(course: Path, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "attncourse.grading.cli", *arguments, "--course", str(course)],
        env=os.environ | SECRET,
        capture_output=True,
        text=True,
    )


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, but for the gradebook."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.parent / path.stem != folder / "gradebook"
    }


def files_that_matter() -> dict[str, int]:
    """When each file of the repository was last changed."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    paths = [ROOT / name for name in listed.stdout.splitlines()]
    return {str(path): path.stat().st_mtime_ns for path in paths if path.exists()}


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
    for _ in range(30):
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
    orphan = apart and status["PPid"] == "1"
    return f"{status['Name']} {command}" if orphan or MARK in status["Name"] + command else ""
