"""How fast a class is graded: stock nbgrader, nbgrader through the judge, the judge, Dask.

``python benchmarks/grading.py [--students 100] [--large 1000] [--stock 100]`` makes a class on
``05_kqv`` and grades the same files in each way, one after the other, start-up and database
included. Times are of this machine at this moment: the ratios are what it says.

Of a hundred students sixty-four are right (in four styles), twenty-four make one usual mistake
each, six hand in an empty notebook and six one whose function raises an error.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from attncourse.grading.demo import fill_in
from attncourse.grading.sample import (
    ATTENTION,
    CRASHING,
    EINSUM,
    HEAD,
    LOOPS,
    MATRICES,
    PROJECT,
    SCORES,
    answers,
)

ROOT = Path(__file__).resolve().parents[1]
NAME = "05_kqv"
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
        answers(MATRICES),
        answers(EINSUM),
        answers(LOOPS),
        answers(EINSUM, attention_scores=SCORES),
    ]
    wrong = [
        answers(MATRICES, project=PROJECT.replace("@ weight", "@ weight.mT")),
        answers(MATRICES, attention_scores=SCORES.replace("key.mT", "key.T")),
        answers(MATRICES, attention_scores=SCORES.replace("query @ key.mT", "key @ query.mT")),
        answers(MATRICES, scaled_dot_product_attention=ATTENTION.replace("** -0.5", "** -1")),
        answers(MATRICES, scaled_dot_product_attention=ATTENTION.replace("dim=-1", "dim=-2")),
        answers(MATRICES, scaled_dot_product_attention=ATTENTION.replace("~mask", "mask")),
        answers(MATRICES, scaled_dot_product_attention=ATTENTION.replace("* scale", "")),
        answers(MATRICES, AttentionHead=HEAD.replace("        super().__init__()\n", "")),
        answers(
            MATRICES,
            AttentionHead=HEAD.replace("self.W_q(x), self.W_k(x)", "self.W_q(x), self.W_q(x)"),
        ),
        answers(MATRICES, AttentionHead=HEAD.replace("** 0.5", "** 1.0")),
        answers(MATRICES, AttentionHead=HEAD.replace("d_v = d_k if", "d_v = d_model if")),
        answers(MATRICES, AttentionHead=HEAD.replace("~mask", "mask")),
    ]
    crash = answers(MATRICES, scaled_dot_product_attention=CRASHING)
    return right * 8 + wrong + [{}] * 3 + [crash] * 3


def make_course(folder: Path, students: int) -> Path:
    """A course whose class has handed in, the assignment released."""
    for part in ("solutions", "exercises"):
        (folder / part / NAME).mkdir(parents=True)
    shutil.copy(ROOT / "solutions" / NAME / f"{NAME}.ipynb", folder / "solutions" / NAME)
    (folder / "nbgrader_config.py").write_text(STOCK)
    run(["nbgrader", "generate_assignment", NAME, "--force"], folder)
    released = (folder / "exercises" / NAME / f"{NAME}.ipynb").read_text()
    notebooks = [fill_in(released, kind) for kind in kinds()]
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


class Memory(threading.Thread):
    """Watches the lanes of a run: the largest memory of one with all its processes, in MB."""

    def __init__(self):
        super().__init__(daemon=True)
        self.peak = 0.0
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.1):
            self.peak = max([self.peak, *self.lanes()])

    def lanes(self) -> list[float]:
        import psutil

        found = []
        for process in psutil.process_iter(["cmdline"]):
            with suppress(psutil.Error):
                above = process.parent()
                if is_lane(process.info["cmdline"]) and not (above and is_lane(above.cmdline())):
                    family = [process, *process.children(recursive=True)]
                    found.append(sum(p.memory_full_info().pss for p in family) / 1e6)
        return found


def is_lane(command: list[str] | None) -> bool:
    return "attncourse.grading.judging.lane" in (command or [])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--students", type=int, default=100)
    options.add_argument("--stock", type=int, default=100, help="how many of them stock grades")
    options.add_argument("--large", type=int, default=1000, help="0: no large class")
    chosen = options.parse_args()
    rows: list[tuple[str, int, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        course = make_course(Path(folder, "course"), chosen.students)
        few = make_course(Path(folder, "few"), chosen.stock) if chosen.stock else None
        reference: dict[str, float] = {}
        for lanes in (1, 2):
            with copy_of(course) as place:
                rows.append(
                    (
                        f"attncourse grade, {lanes} lane{'s' * (lanes > 1)}",
                        chosen.students,
                        grade(place, "--jobs", str(lanes)),
                    )
                )
                reference = reference or points(place)
                assert points(place) == reference
        memory = Memory()  # watching takes time, so this run is for nothing else
        with copy_of(course) as place:
            memory.start()
            grade(place, "--jobs", "2")
            memory.over.set()
        with copy_of(course) as place, cluster() as address:
            rows.append(
                (
                    "attncourse grade, Dask, 2 workers",
                    chosen.students,
                    grade(place, "--dask", address),
                )
            )
            assert points(place) == reference
        with copy_of(course) as place:
            seconds, _ = run(["nbgrader", "autograde", NAME], place)
            rows.append(("nbgrader autograde through the judge", chosen.students, seconds))
            assert points(place) == reference
        if few:
            with copy_of(few, STOCK) as place:
                seconds, _ = run(["nbgrader", "autograde", NAME], place)
                rows.append(("stock nbgrader autograde", chosen.stock, seconds))
                stock = points(place)
                differ = [s for s in stock if stock[s] != reference.get(s)]
                print(f"{len(differ)} of {len(stock)} students have other points in stock nbgrader")
        if chosen.large:
            large = make_course(Path(folder, "large"), chosen.large)
            with copy_of(large) as place:
                seconds = grade(place, "--jobs", "2")
                rows.append(
                    (f"attncourse grade, 2 lanes, {chosen.large} students", chosen.large, seconds)
                )
                again = grade(place, "--jobs", "2")
                rows.append(("the same again, nothing changed", chosen.large, again))
    show(rows, memory.peak)


def show(rows: list[tuple[str, int, float]], peak: float) -> None:
    """The table, as Markdown."""
    stock = next((s / n for name, n, s in rows if name.startswith("stock")), None)
    print("| way | submissions | seconds | ms a submission | × stock |")
    print("| --- | --: | --: | --: | --: |")
    for name, number, seconds in rows:
        each = seconds / number
        ratio = f"{stock / each:.0f}" if stock else ""
        print(f"| {name} | {number} | {seconds:.1f} | {1000 * each:.0f} | {ratio} |")
    print(f"\nPeak memory of one lane with its processes: {peak:.0f} MB (proportional set size).")
    print(f"Cores: {len(os.sched_getaffinity(0))}.")


if __name__ == "__main__":
    main()
