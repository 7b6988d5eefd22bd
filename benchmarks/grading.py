"""How fast a class is graded: stock nbgrader, nbgrader through the judge, the judge, Dask.

``python benchmarks/grading.py [--students 100] [--large 1000] [--stock 100] [--rounds 3]`` makes a
class on ``05_kqv`` and grades the same files in each way, one after the other, start-up and
database included. Times are of this machine at this moment: the ratios are what it says.

Of a hundred students sixty-four are right (in four styles), twenty-four make one usual mistake
each, six hand in an empty notebook and six one whose function raises an error.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from attncourse.grading.demo import fill_solution_cells
from attncourse.grading.sample import (
    ATTENTION,
    ATTENTION_HEAD_SOURCE,
    ATTENTION_SCORES_SOURCE,
    CRASHING,
    EINSUM,
    LOOPS,
    MATRICES,
    PROJECT,
    sample_answers,
)

ROOT = Path(__file__).resolve().parents[1]
NAME = "05_kqv"
TWO, STOCKS = "attncourse grade, 2 lanes", "stock nbgrader autograde"
BIN = Path(sys.executable).parent
ENVIRONMENT = {
    **os.environ,
    "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
    "PYTHONWARNINGS": "ignore",
    "OMP_NUM_THREADS": "1",
}
STOCK = """
c = get_config()
c.CourseDirectory.course_id = "attention"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.py", "*.md", "*.db"]
"""


def kinds() -> list[dict[str, str]]:
    """What fifty students wrote; a class repeats them."""
    right = [
        sample_answers(MATRICES),
        sample_answers(EINSUM),
        sample_answers(LOOPS),
        sample_answers(EINSUM, attention_scores=ATTENTION_SCORES_SOURCE),
    ]
    wrong = [
        sample_answers(MATRICES, project=PROJECT.replace("@ weight", "@ weight.mT")),
        sample_answers(
            MATRICES, attention_scores=ATTENTION_SCORES_SOURCE.replace("key.mT", "key.T")
        ),
        sample_answers(
            MATRICES,
            attention_scores=ATTENTION_SCORES_SOURCE.replace("query @ key.mT", "key @ query.mT"),
        ),
        sample_answers(
            MATRICES, scaled_dot_product_attention=ATTENTION.replace("** -0.5", "** -1")
        ),
        sample_answers(
            MATRICES, scaled_dot_product_attention=ATTENTION.replace("dim=-1", "dim=-2")
        ),
        sample_answers(MATRICES, scaled_dot_product_attention=ATTENTION.replace("~mask", "mask")),
        sample_answers(MATRICES, scaled_dot_product_attention=ATTENTION.replace("* scale", "")),
        sample_answers(
            MATRICES,
            AttentionHead=ATTENTION_HEAD_SOURCE.replace("        super().__init__()\n", ""),
        ),
        sample_answers(
            MATRICES,
            AttentionHead=ATTENTION_HEAD_SOURCE.replace(
                "self.W_q(x), self.W_k(x)", "self.W_q(x), self.W_q(x)"
            ),
        ),
        sample_answers(MATRICES, AttentionHead=ATTENTION_HEAD_SOURCE.replace("** 0.5", "** 1.0")),
        sample_answers(
            MATRICES,
            AttentionHead=ATTENTION_HEAD_SOURCE.replace("d_v = d_k if", "d_v = d_model if"),
        ),
        sample_answers(MATRICES, AttentionHead=ATTENTION_HEAD_SOURCE.replace("~mask", "mask")),
    ]
    crash = sample_answers(MATRICES, scaled_dot_product_attention=CRASHING)
    return right * 8 + wrong + [{}] * 3 + [crash] * 3


def make_course(folder: Path, students: int) -> Path:
    """A course whose class has handed in, the assignment released."""
    for part in ("solutions", "exercises"):
        (folder / part / NAME).mkdir(parents=True)
    shutil.copy(ROOT / "solutions" / NAME / f"{NAME}.ipynb", folder / "solutions" / NAME)
    (folder / "nbgrader_config.py").write_text(STOCK)
    run(["nbgrader", "generate_assignment", NAME, "--force"], folder)
    released = (folder / "exercises" / NAME / f"{NAME}.ipynb").read_text()
    notebooks = [fill_solution_cells(released, kind) for kind in kinds()]
    for number in range(students):
        place = folder / "submitted" / f"student{number:04d}" / NAME
        place.mkdir(parents=True)
        (place / f"{NAME}.ipynb").write_text(notebooks[number % len(notebooks)])
    return folder


def run(command: list[str], folder: Path) -> tuple[float, str]:
    """Seconds that a command took, and what it said; it has to succeed."""
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    seconds = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return seconds, done.stdout + done.stderr


def grade(course: Path, *options: str) -> float:
    """Grade a course by this project's command; return the seconds it took."""
    command = [sys.executable, "-m", "attncourse.grading.cli", "grade", NAME, *options]
    return run(command, course)[0]


@contextmanager
def copy_of(course: Path, config: str = ""):
    """A copy of the course to grade in, with the project's or another nbgrader configuration."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "course")
        shutil.copytree(course, place)
        if config:
            (place / "nbgrader_config.py").write_text(config)
        else:
            shutil.copy(ROOT / "nbgrader_config.py", place)
        yield place


def points(course: Path) -> dict[str, float]:
    """Each student's points, by nbgrader's own gradebook."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course}/gradebook.db", "attention") as gradebook:
        return {s.student_id: s.score for s in gradebook.assignment_submissions(NAME)}


@contextmanager
def cluster():
    """A Dask scheduler with two workers on this machine; its address."""
    processes = []

    def start(*arguments: str) -> subprocess.Popen:
        command = [sys.executable, "-m", f"distributed.cli.{arguments[0]}", *arguments[1:]]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        processes.append(
            subprocess.Popen(command, env=ENVIRONMENT, start_new_session=True, **options)
        )
        return processes[-1]

    try:
        scheduler = start("dask_scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard")
        address = next(m[0] for s in scheduler.stdout if (m := re.search(r"tcp://[\d.]+:\d+", s)))
        for _ in range(2):
            worker = start(
                *("dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"),
                *("--local-directory", tempfile.gettempdir()),
            )
            next(line for line in worker.stdout if "Registered" in line or "Starting" in line)
        time.sleep(2)
        yield address
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait()


class PeakMemory(threading.Thread):
    """Watches the lanes of a run: the largest memory of one with all its processes, in MB."""

    def __init__(self):
        super().__init__(daemon=True)
        self.peak = 0.0
        self.over = threading.Event()

    def run(self) -> None:
        """Look at the lanes' memory until it is over."""
        while not self.over.wait(0.1):
            self.peak = max([self.peak, *self.lanes()])

    def lanes(self) -> list[float]:
        """Return the MB that each lane and its processes take."""
        import psutil

        megabytes = []
        for process in psutil.process_iter(["cmdline"]):
            with suppress(psutil.Error):
                above = process.parent()
                if is_lane(process.info["cmdline"]) and not (above and is_lane(above.cmdline())):
                    family = [process, *process.children(recursive=True)]
                    megabytes.append(sum(p.memory_full_info().pss for p in family) / 1e6)
        return megabytes


def is_lane(command: list[str] | None) -> bool:
    """True for the command line of a lane."""
    return "attncourse.grading.judge.lane" in (command or [])


def main() -> None:
    """Print the throughput of stock nbgrader and of this project on the same submissions."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--students", type=int, default=100)
    options.add_argument("--stock", type=int, default=100, help="how many of them stock grades")
    options.add_argument("--large", type=int, default=1000, help="0: no large class")
    options.add_argument("--rounds", type=int, default=3, help="how often all is done")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        show(measured(Path(folder), chosen))


def measured(folder: Path, chosen: argparse.Namespace) -> "Timings":
    """Every way of grading, timed, in rounds: a machine is not as fast in one as in another."""
    course, table = make_course(folder / "course", chosen.students), Timings()
    few = make_course(folder / "few", chosen.stock) if chosen.stock else None

    def fast(name: str, *options: str) -> None:
        with copy_of(course) as place:
            table.add(name, chosen.students, grade(place, *options))
            table.agree(points(place))

    for number in range(chosen.rounds):
        fast("attncourse grade, 1 lane", "--jobs", "1")
        fast(TWO, "--jobs", "2")
        with cluster() as address:
            fast("attncourse grade, Dask, 2 workers", "--dask", address)
        if number == 0:
            with copy_of(course) as place:
                name = "nbgrader autograde through the judge"
                table.add(name, chosen.students, run(["nbgrader", "autograde", NAME], place)[0])
                table.agree(points(place))
        if few:
            with copy_of(few, STOCK) as place:
                table.add(STOCKS, chosen.stock, run(["nbgrader", "autograde", NAME], place)[0])
                table.compare(points(place))
    if chosen.large:
        with copy_of(make_course(folder / "large", chosen.large)) as place:
            name = f"{TWO}, {chosen.large} students"
            table.add(name, chosen.large, grade(place, "--jobs", "2"))
            name = "the same again, nothing changed"
            table.add(name, chosen.large, grade(place, "--jobs", "2"))
    with copy_of(course) as place:  # watching takes time, so this run is for nothing else
        watch = PeakMemory()
        watch.start()
        grade(place, "--jobs", "2")
        watch.over.set()
        table.peak = watch.peak
    return table


class Timings:
    """The seconds of every way, and whether they come to the same points."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[int, list[float]]] = {}
        self.points: dict[str, float] = {}
        self.others = self.compared = 0  # students whose points in stock nbgrader are others
        self.peak = 0.0

    def add(self, name: str, submissions: int, seconds: float) -> None:
        """Note the seconds of one run over so many submissions."""
        self.rows.setdefault(name, (submissions, []))[1].append(seconds)

    def agree(self, points: dict[str, float]) -> None:
        """Require the same points as of the first run."""
        self.points = self.points or points
        assert points == self.points

    def compare(self, points: dict[str, float]) -> None:
        """Note how many points are other than of the first run."""
        self.compared = len(points)
        self.others = sum(score != self.points.get(student) for student, score in points.items())


def show(table: Timings) -> None:
    """The table, as Markdown: medians, and where a way ran several times the extremes."""
    graded, seconds = table.rows.get(STOCKS, (0, []))
    stock = statistics.median(seconds) / graded if seconds else None
    print("| way | submissions | seconds | ms a submission | × stock |")
    print("| --- | --: | --: | --: | --: |")
    for name, (submissions, seconds) in table.rows.items():
        each = statistics.median(seconds) / submissions
        ratio = f"{stock / each:.0f}" if stock else ""
        extremes = f" ({min(seconds):.1f} to {max(seconds):.1f})" if len(seconds) > 1 else ""
        taken = f"{statistics.median(seconds):.1f}{extremes}"
        print(f"| {name} | {submissions} | {taken} | {1000 * each:.0f} | {ratio} |")
    print(
        f"\nPeak memory of a lane with its processes: {table.peak:.0f} MB (proportional set size)."
    )
    print(f"Cores: {len(os.sched_getaffinity(0))}.")
    if stock:
        pairs = zip(table.rows[STOCKS][1], table.rows[TWO][1], strict=True)
        each = [(a / graded) / (b / table.rows[TWO][0]) for a, b in pairs]
        print(f"{TWO} against stock, round by round: {', '.join(f'{r:.0f}' for r in each)}.")
    if table.compared:
        print(f"{table.others} of {table.compared} students have other points in stock nbgrader.")


if __name__ == "__main__":
    main()
