"""The command ``attncourse``: check, grade, demo."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attncourse.grading.errors import UserError

if TYPE_CHECKING:
    from attncourse.grading.limits import Limits
    from attncourse.grading.report import Report

app = typer.Typer(
    help="Exercises of the course: check your own, or grade a class.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
Timeout = Annotated[float, typer.Option(min=1, metavar="SEC", help="Seconds for one submission.")]
Jobs = Annotated[int, typer.Option(min=0, help="Submissions at a time; 0: one per core.")]
CourseFolder = Annotated[Path, typer.Option("--course", help="The course's folder.")]


def main() -> None:
    """Runs the command line; what the user can put right is one line and exit status 2."""
    try:
        app()
    except UserError as error:
        print(f"attncourse: {error}", file=sys.stderr)
        sys.exit(2)


@app.command()
def check(
    notebook: Annotated[Path, typer.Argument(help="Your notebook.")], timeout: Timeout = 120
) -> None:
    """Show the verdicts on your own notebook. Status 0: all passed, 1: something failed."""
    from attncourse.grading.limits import Limits
    from attncourse.grading.selfcheck import check_file
    from attncourse.grading.table import own_verdicts

    with stopping("nothing was changed"):
        report = check_file(notebook, Limits.of(timeout))
    print(own_verdicts(report))
    raise typer.Exit(0 if report.points == report.maximum else 1)


@app.command()
def grade(
    assignment: Annotated[str, typer.Argument(help="Its folder in solutions/, say 05_kqv.")],
    student: Annotated[str | None, typer.Option(help="Grade this student only.")] = None,
    jobs: Jobs = 0,
    timeout: Timeout = 120,
    course: CourseFolder = Path(),
) -> None:
    """Grade submitted/*/ASSIGNMENT/ and write nbgrader's gradebook."""
    from attncourse.grading.limits import Limits

    grade_course(course, assignment, student, jobs, Limits.of(timeout))


@app.command()
def demo(
    jobs: Jobs = 0,
    course: CourseFolder = Path(),
    folder: Annotated[Path, typer.Option(help="Where to make it.")] = Path("_build/demo"),
) -> None:
    """Make a sample class of eight, grade it, and show the table."""
    from attncourse.grading.demo import ASSIGNMENT, LIMITS, make_course
    from attncourse.grading.gradebook import require_nbgrader

    require_nbgrader()
    make_course(course, folder)
    grade_course(folder, ASSIGNMENT, None, jobs, LIMITS)


def grade_course(
    course: Path, name: str, student: str | None, jobs: int, limits: "Limits"
) -> list["Report"]:
    """Grades a course's submissions with a progress bar, saves the points, shows the table."""
    from rich.console import Console

    from attncourse.grading import course as folders
    from attncourse.grading import gradebook
    from attncourse.grading.table import class_table

    gradebook.require_nbgrader()
    assignment = folders.find_assignment(course, name)
    submissions = folders.find_submissions(course, name, student)
    console = Console()
    with stopping("no points were written"):
        gradebook.record_assignment(course, name)  # what cannot be saved is not graded first
        reports = with_progress(console, submissions, assignment, jobs, limits)
    with stopping("the gradebook may hold some of the points: grade again"):
        gradebook.save(course, assignment, zip(submissions, reports, strict=True))
    console.print(class_table(reports))
    console.print(f"{len(reports)} graded; points are in {course / 'gradebook.db'}")
    return reports


def with_progress(console, submissions, assignment, jobs: int, limits: "Limits") -> list["Report"]:
    """The reports on all submissions, ``jobs`` at a time, with a bar that shows how far it is."""
    import os
    from concurrent.futures import ThreadPoolExecutor

    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from attncourse.grading.course import grade_all
    from attncourse.grading.process import cancel

    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
    with (
        Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal
        ) as progress,
        ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool,
    ):
        bar = progress.add_task(f"grading {assignment.name}", total=len(submissions))
        try:
            return grade_all(
                submissions, assignment, pool, limits, lambda report: progress.advance(bar)
            )
        except BaseException:  # before the pool waits for them
            cancel()
            raise


@contextmanager
def stopping(state: str) -> Iterator[None]:
    """Ctrl-C inside the block says how things stand and ends the command with status 130."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"attncourse: stopped; {state}", file=sys.stderr)
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
