"""A class graded by the driver, with an executor that runs nothing."""

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from attncourse.grading.driver import command
from attncourse.grading.limits import Limits
from attncourse.grading.report import CellResult, Report
from helpers import forked_commands
from helpers.small_course import NAME

COMMAND = [sys.executable, "-W", "error", "-m", "attncourse.grading.cli"]


class Marker(Executor):
    """Run nothing: give each submission its length in bytes modulo 3 as points of a cell.

    ``problem`` is called before; the exception that it returns is raised.
    """

    def __init__(self, problem: Callable[[str, int], BaseException | None] = lambda *_: None):
        self.problem = problem
        self.seen: list[str] = []
        self.seeds: list[int] = []

    def submit(self, function, data, assignment, *, student, limits, sandbox=True, **more):
        self.seen.append(student)
        self.seeds.append(more["seed"])
        future: Future[Report] = Future()
        problem = self.problem(student, self.seen.count(student))
        if problem is not None:
            future.set_exception(problem)
        else:
            cells = {
                g: CellResult(float(len(data) % 3), c.points) for g, c in assignment.graded.items()
            }
            report = Report(student, assignment.name, "graded", cells, sandbox=sandbox)
            report = replace(report, seed=more["seed"])
            future.set_result(report)
        return future


def marking(monkeypatch) -> Marker:
    """Return a marker that takes the place of the executor in every run of the test."""
    marker = Marker()

    @contextmanager
    def executor(jobs=0, dask=None):
        yield marker, 2

    monkeypatch.setattr(command, "open_executor", executor)
    return marker


def grade(course: Path, student: str | None = None, **more) -> command.Tally:
    return command.grade_course(course, NAME, student, limits=more.pop("limits", Limits()), **more)


def run(*arguments: object, cwd: Path, prefix: list[str] | None = None, **more: str):
    if prefix is None:
        return forked_commands.run(*arguments, cwd=cwd, **more)
    environment = {**os.environ, "COLUMNS": "140", **more}
    return subprocess.run(
        [*prefix, *COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment,
        timeout=60,
    )
