"""A class of twelve, graded while its processes are stopped and killed."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import cycle
from pathlib import Path

import psutil

from helpers.dask_clusters import ENVIRONMENT, cluster
from helpers.journal_records import number_of_results
from helpers.small_course import NAME, make_course, small

KINDS = ("driver", "lane", "zygote", "worker")
LIMIT = 600.0  # seconds after which something hangs
WORK = "import time\nuntil = time.process_time() + 0.05\nwhile time.process_time() < until: pass\n"
ADD = (
    WORK + "def add(a, b):\n    return a + b",
    "def add(a, b):\n"
    + "    ".join(("    " + WORK).splitlines(keepends=True))
    + "    return a + b",
    WORK + "def add(a, b):\n    return 0",
    "def add(a, b):\n    import os\n    os._exit(3)",
)
TWICE = (
    "def twice(a):\n    return 2 * a",
    WORK + "def twice(a):\n    return a\nraise ValueError",
    WORK + "def twice(a):\n    return a + later\n" + WORK + "later += 0",
)


def class_of_twelve(folder: Path) -> Path:
    """Right, wrong and broken answers, each of which works for a moment."""
    answers = {
        f"s{n}-{m}": small(add, twice) for n, add in enumerate(ADD) for m, twice in enumerate(TWICE)
    }
    return make_course(folder, **answers)


def points(course: Path) -> dict[tuple[str, str], float]:
    """The points in the gradebook, by student and test."""
    query = (
        "select s.student_id, c.name, g.auto_score from grade g "
        "join base_cell c on c.id = g.cell_id "
        "join submitted_notebook n on n.id = g.notebook_id "
        "join submitted_assignment s on s.id = n.assignment_id"
    )
    with closing(sqlite3.connect(course / "gradebook.db")) as book:
        return {(student, test): score for student, test, score in book.execute(query)}


class Grading:
    """A driver at work, and the processes that it has."""

    def __init__(self, course: Path, *options: str, prefix: tuple[str, ...] = ()):
        command = [sys.executable, "-m", "attncourse.grading.cli", "grade", NAME, *options]
        self.process = subprocess.Popen(
            [*prefix, *command],
            cwd=course,
            env=ENVIRONMENT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.began = time.monotonic()

    def runs(self) -> bool:
        assert time.monotonic() - self.began < LIMIT, "hangs"
        return self.process.poll() is None

    def of_kind(self, kind: str) -> list[int]:
        """Its processes of a kind that there are just now."""
        if kind == "driver":
            return [self.process.pid]
        lanes = sorted(lanes_of(self.process.pid))
        below = {"lane": 0, "zygote": 1, "worker": 2}[kind]
        for _ in range(below):
            lanes = [child for pid in lanes for child in children(pid)]
        return lanes

    def end(self, refusal: str = "") -> int:
        """Its status, once it has ended: well, killed, or with a ``refusal`` that says this."""
        while self.runs():
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(1)
        said = self.process.stderr.read()
        self.process.stderr.close()
        refused = bool(refusal) and refusal in said
        assert refused or self.process.returncode in (0, -signal.SIGKILL), said
        return self.process.returncode


def children(pid: int) -> list[int]:
    with suppress(psutil.Error):
        return [child.pid for child in psutil.Process(pid).children()]
    return []


def lanes_of(driver: int) -> set[int]:
    """The lanes at the other ends of this driver's pipes: not all are its children."""
    pipes = pipes_of(driver)
    return {
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if "grading.judge.lane" in text_of(path) and pipes & pipes_of(int(path.parent.name))
    }


def pipes_of(pid: int) -> set[str]:
    found = set()
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    return {name for name in found if name.startswith("pipe:")}


def text_of(path: Path) -> str:
    with suppress(OSError):
        return path.read_text()
    return ""


# --- disturbances ---------------------------------------------------------------------------------

# Grades a course while something happens: what did, and the status.
Disturb = Callable[..., tuple[list[str], int]]


def nothing(course: Path, dice: random.Random, *options: str) -> tuple[list[str], int]:
    return [], Grading(course, *options).end()


def send(number: int, pids: list[int]) -> int:
    """Sends a signal to those that are still there; how many those were."""
    found = 0
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
            found += 1
    return found


def once(kind: str) -> Disturb:
    """Kills one process of a kind at some moment of the grading."""

    def disturb(course: Path, dice: random.Random, *options: str) -> tuple[list[str], int]:
        grading = Grading(course, *options)
        while grading.runs() and not grading.of_kind("worker"):
            time.sleep(0.1)  # to look through all processes takes some milliseconds
        time.sleep(dice.uniform(0, 1))
        for _ in range(1000):
            there = grading.of_kind(kind) if grading.runs() else []
            if there and send(signal.SIGKILL, [dice.choice(there)]):
                return [f"{kind} killed"], grading.end()
            time.sleep(0.001)
        return [], grading.end()

    return disturb


def frozen(shortest: float, longest: float, pause: float) -> Disturb:
    """Stops processes of some kinds for so many seconds, again and again."""

    def disturb(course: Path, dice: random.Random, *options: str) -> tuple[list[str], int]:
        found, grading = [], Grading(course, *options)
        while grading.runs():
            time.sleep(dice.uniform(0, pause))
            kinds = dice.choice([*((kind,) for kind in KINDS), KINDS])
            pids = [pid for kind in kinds for pid in grading.of_kind(kind)]
            seconds = dice.uniform(shortest, longest)
            try:
                stopped = send(signal.SIGSTOP, pids)
                time.sleep(seconds if stopped else 0)
            finally:
                send(signal.SIGCONT, pids)
            found += [f"{' '.join(kinds)} stopped for {seconds:.1f} s"] if stopped else []
        return found, grading.end()

    return disturb


def full_disk(course: Path, dice: random.Random, *options: str) -> tuple[list[str], int]:
    """The course lies on a disk that has room for a part of the results; then there is more."""
    room = dice.randint(120, 360)
    disk = course.with_name(f"{course.name}-disk")
    disk.mkdir()
    script = (
        f"mount -t tmpfs -o size={room}k tmpfs '{disk}'; cp -r '{course}/.' '{disk}'; cd '{disk}'\n"
        f'trap \'cp -r "{disk}/." "{course}"\' EXIT; "$@"; exit'
    )
    prefix = (*PRIVATE_MOUNTS, "sh", "-ec", script, "sh")
    status = Grading(course, *options, prefix=prefix).end(refusal="cannot write")
    return [f"a disk of {room} kB was full"] if status else [], status


PRIVATE_MOUNTS = ("unshare", "--user", "--map-root-user", "--mount")


def can_fill_disks() -> bool:
    """Whether a disk can be had here that nobody else sees."""
    command = [*PRIVATE_MOUNTS, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    there = shutil.which(command[0]) is not None
    return there and not subprocess.run(command, stderr=subprocess.DEVNULL).returncode


def locked_gradebook(course: Path, dice: random.Random, *options: str) -> tuple[list[str], int]:
    """Another program holds the gradebook for longer than the driver waits; then it lets it go."""
    number = dice.randint(2, 8)
    grading = Grading(course, *options)
    while grading.runs() and number_of_results(course) < number:
        time.sleep(0.01)
    with closing(sqlite3.connect(course / "gradebook.db", 60, isolation_level=None)) as book:
        book.execute("begin exclusive")
        status = grading.end(refusal="database is locked")
    return ["the gradebook was locked"] if status else [], status


def worker_goes(course: Path, dice: random.Random, *options: str) -> tuple[list[str], int]:
    """One of a cluster's two workers ends at some moment of the grading, or is ended."""
    number = dice.randint(2, 8)
    how = dice.choice((signal.SIGKILL, signal.SIGTERM))
    with cluster(course.parent, 2) as (address, workers):
        grading = Grading(course, "--dask", address, *options)
        while grading.runs() and number_of_results(course) < number:
            time.sleep(0.01)
        if not grading.runs():
            return [], grading.end()
        os.killpg(workers[0].pid, how)
        return [f"a Dask worker got {how.name}"], grading.end()


def disturbances(shortest: float, longest: float, pause: float) -> Iterator[Disturb]:
    """Each kind in turn, for ever."""
    disks = [full_disk] if can_fill_disks() else []
    return cycle(
        [frozen(shortest, longest, pause), *map(once, KINDS), *disks, locked_gradebook, worker_goes]
    )


def graded(course: Path, disturb: Disturb, dice: random.Random, *options: str) -> list[str]:
    """Grades a course while it is disturbed, again where that had no end; what happened."""
    found, status = disturb(course, dice, *options)
    if status:
        assert Grading(course, *options).end() == 0
    return found
