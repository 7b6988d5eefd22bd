"""The command ``attncourse``, for students, instructors and readers of the book."""

import atexit
import gc
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from attncourse.grading.errors import UserError, missing_module_sentence
from attncourse.grading.harmless import made_visible
from attncourse.grading.limits import Limits
from attncourse.grading.machine import choose_lanes, require_threads
from attncourse.grading.report import count
from attncourse.grading.stopping import ending_at_ctrl_c
from attncourse.support.output import keep_what_is_written

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from attncourse.grading.results.summary import Summary

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
TIMEOUT = typer.Option(Limits.submission, min=1, metavar="SEC", help="Seconds for one submission.")
JOBS = typer.Option(0, min=0, help="Submissions at a time; 0: one per core.")
DB = typer.Option(None, "--db", metavar="URL", help="The gradebook. [default: gradebook.db]")
COURSE = typer.Option(Path(), "--course", help="The course's folder.")
ALL = typer.Option(False, "--all", help="All assignments.")
TRUST = typer.Option(
    "",
    metavar="numbers|names",
    help="Which is right where a number and a name are two people's. [default: neither: stop]",
)
FOLDER_HELP = "Its folder in solutions/, say 05_kqv."
ASSIGNMENT = typer.Argument(help=FOLDER_HELP)
GRADED = typer.Argument(help="A graded assignment, say 05_kqv.")


def main() -> None:
    """Run the command line; what the user can put right is one line and exit status 2."""
    gc.set_threshold(50_000)  # nearly all that a command makes is imported, and stays
    keep_what_is_written(sys.stdout, sys.stderr)
    try:
        require_threads()
        app()
    except UserError as error:
        print_remark(str(error))
        sys.exit(2)
    except ModuleNotFoundError as error:
        if not (line := missing_module_sentence(error.name or "")):
            raise
        print_remark(line)
        sys.exit(2)


def print_remark(line: str) -> None:
    """Print a remark on standard error; names of other people's in it act on no terminal."""
    print(f"attncourse: {made_visible(line)}", file=sys.stderr)


def print_lines(text: str) -> None:
    """Print what a command found on standard output; what is in it acts on no terminal."""
    print(made_visible(text))


def show_version(requested: bool) -> None:
    """Print which version this is, and end."""
    if requested:
        from importlib.metadata import version

        print(f"attncourse {version('attncourse')}")
        raise typer.Exit


@app.callback(help="Exercises of the course: check your own, or grade a class.")
def handle_common_options(
    version: bool = typer.Option(
        False, "--version", callback=show_version, is_eager=True, help="Show the version and end."
    ),
) -> None:
    """Handle options that stand before a command: ``--version``."""


def one_or_all(name: str | None, everything: bool, names: Callable[[], list[str]]) -> list[str]:
    """Return the one assignment that was named or, with ``--all``, every one, by ``names``.

    Raises ``UserError`` unless exactly one of both was asked for.
    """
    if (name is None) != everything:
        raise UserError("name one assignment, or all of them: --all")
    return names() if name is None else [name]


def end_process(status: int) -> NoReturn:
    """End this process with this status, after the functions that are registered for its end.

    To take nbgrader's and SQLAlchemy's modules apart would take as long as a few submissions.
    """
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def progress_text(number: int, of: int, name: str) -> "Text":
    """Return a line of progress, "3 of 8: NAME"; markup in the name is shown as it is."""
    from rich.text import Text

    return Text(made_visible(f"{number} of {of}: {name}"))


def step_printer(console: "Console") -> Callable[[int, int, str], None]:
    """Return a function that prints a line of progress on a console."""

    def print_step(number: int, of: int, name: str) -> None:
        console.print(progress_text(number, of, name))

    return print_step


@app.command()
def check(
    notebook: Path = typer.Argument(help="Your notebook."),
    timeout: float = TIMEOUT,
) -> None:
    """Show the verdicts on your own notebook. Status 0: all passed, 1: something failed."""
    from attncourse.grading.judge.prestart import start_ahead

    start_ahead(notebook)
    from attncourse.checks.showing.spinner import show_still_running
    from attncourse.grading.results.terminal import own_verdicts
    from attncourse.grading.student.selfcheck import check_file

    with ending_at_ctrl_c("nothing was changed"), show_still_running(notebook.name):
        report = check_file(notebook, Limits.of(timeout))
    print_lines(own_verdicts(report))
    raise typer.Exit(0 if report.points == report.maximum else 1)


@app.command()
def progress(
    folder: Path = typer.Argument(Path(), help="The folder with your notebooks."),
    timeout: float = TIMEOUT,
) -> None:
    """Show which exercises of the course are done, tried and open, and what comes next."""
    from rich.console import Console

    from attncourse.grading.student.progress import folder_progress as progress_in
    from attncourse.grading.student.progress import progress_table, summary

    error_console = Console(stderr=True, soft_wrap=True)
    with ending_at_ctrl_c("nothing was changed"), error_console.status("reading …"):
        progress_of_folder = progress_in(folder, Limits.of(timeout), step_printer(error_console))
    Console().print(progress_table(progress_of_folder))
    print_lines(summary(progress_of_folder))
    for reason in progress_of_folder.left_out:
        print_remark(f"not counted: {reason}")


@app.command()
def practise(
    chapter: str = typer.Argument(help="A chapter, say 05_kqv."),
    number: int = typer.Option(6, min=1, help="How many functions to mend."),
    seed: str = typer.Option("", help="A whole number: the same one draws the same functions."),
    folder: Path = typer.Option(Path(), help="The folder with your notebooks."),
    output: Path | None = typer.Option(
        None, "--output", "-o", help="A new file. [default: 05_kqv_practice.ipynb]"
    ),
) -> None:
    """Write a notebook of functions with one wrong line, to be found and mended.

    What the checks named in your saved notebooks comes first. No file is overwritten.
    """
    from attncourse.grading.student.practise import write_practice

    with ending_at_ctrl_c("nothing was written"):
        written = write_practice(chapter, number, seed, folder, output)
    for remark in written.remarks:
        print_remark(remark)
    print_lines(f"{written.path} written: {count(written.drills, 'function')} to mend")


@app.command()
def assemble(
    notebooks: list[Path] = typer.Argument(help="Your notebooks, one a chapter."),
    output: Path = typer.Option(Path("mine"), "--output", "-o", help="The package, called mine."),
    timeout: float = TIMEOUT,
) -> None:
    """Put your answers together as a package: what is right is yours, the rest is ours."""
    from rich.console import Console

    from attncourse.grading.student.assemble import assemble_package as make

    error_console = Console(stderr=True, soft_wrap=True)
    with ending_at_ctrl_c("nothing was written"), error_console.status("judging …"):
        assembled = make(
            notebooks,
            output,
            Limits.of(timeout),
            step_printer(error_console),
        )
    print_lines(str(assembled))


@app.command()
def milestone(
    name: str = typer.Argument(help="recall, dates, copying, language, digits or chat."),
    parts: Path = typer.Option(Path("mine"), help="What attncourse assemble made."),
    picture: Path | None = typer.Option(None, help="Where to draw it. [default: NAME.png]"),
    ask: str = typer.Option("", help="A question for a model that answers."),
) -> None:
    """Train a model made of your parts, and see what it can do. Status 0: it can, 1: not yet."""
    from attncourse.grading.files import explained_file_errors
    from attncourse.grading.student.package import record_milestone
    from attncourse.milestones import find_milestone
    from attncourse.milestones.milestone import run_milestone
    from attncourse.milestones.parts import read_parts
    from attncourse.milestones.talking import require_answers, talk

    place = picture or Path(f"{name}.png")
    try:
        with ending_at_ctrl_c("nothing was drawn"):
            chosen_milestone = find_milestone(name)
            require_answers(chosen_milestone, ask)
            outcome = run_milestone(chosen_milestone, read_parts(parts))
            print(outcome)
            if outcome.passed:
                talk(outcome, ask)
    except ValueError as problem:
        raise UserError(str(problem)) from None
    if outcome.passed:
        with explained_file_errors(place, "; name another file with --picture"):
            outcome.milestone.picture(outcome.model).savefig(place, format="png")
        print(f"  picture: {place}")
        record_milestone(parts, name, len(outcome.ours))
    raise typer.Exit(0 if outcome.passed else 1)


@app.command()
def model() -> None:
    """Fetch the language model of Part V (93 MB, once), and say where it is."""
    from attncourse.pretrained.model import ABOUT, NoModel, model_file

    try:
        with ending_at_ctrl_c("what was fetched is gone, and the same command starts anew"):
            path = model_file()
    except NoModel as problem:
        raise UserError(str(problem)) from None
    print(f"{ABOUT}: {path}")


@app.command()
def release(
    assignment: str | None = typer.Argument(None, help=FOLDER_HELP),
    everything: bool = ALL,
    course: Path = COURSE,
    db: str | None = DB,
    variant: str = typer.Option(
        "",
        help="Another convention, say halves for 11_positions, which published answers do not "
        "fit; published: the book's. [default: that of the last release]",
    ),
    mend: int = typer.Option(
        0, min=0, help="Of a chapter, in place of its exercises: so many functions to mend."
    ),
    seed: str = typer.Option("", help="With --mend: a whole number, another one for each class."),
    untested: bool = typer.Option(
        False, "--untested", help="Do not run the answers in solutions/ against the tests first."
    ),
) -> None:
    """Make the students' version of an assignment, without the answers, and record its cells."""
    from attncourse.grading.course.folders import releasable_assignments
    from attncourse.grading.course.solution import outdated_solution
    from attncourse.grading.course.variants import variants_in
    from attncourse.grading.driver.rehearsal import rehearse_assignment
    from attncourse.grading.nbgrader.release import release_assignment as make_release

    if everything and (variant or mend):
        option = "--variant" if variant else "--mend"
        raise UserError(f"{option} is for one assignment: name it in place of --all")
    if mend:
        assignment = mend_assignment(course, assignment, mend, seed, variant)
    elif seed:
        raise UserError("--seed says which functions are drawn with --mend, and nothing else")
    for name in one_or_all(assignment, everything, lambda: releasable_assignments(course)):
        if not untested:
            rehearse_assignment(course, name)
        written, changed = make_release(course, name, db, variant)
        for change in (*outdated_solution(course, name), *changed):
            print_remark(f"{name}: {change}")
        for path in written:
            print(f"{path} written", flush=True)
        if variant_in_use := variants_in(course).get(name):
            print(
                f"variant: {variant_in_use}; --variant published goes back to the book's convention"
            )


def mend_assignment(course: Path, chapter: str | None, number: int, seed: str, variant: str) -> str:
    """Return the name of the assignment of functions to mend, made where it is not there yet."""
    from attncourse.grading.course.mending import write_mend_assignment
    from attncourse.grading.seeds import whole_number

    if chapter is None:
        raise UserError("--mend takes a chapter: attncourse release 05_kqv --mend 4")
    if variant:
        raise UserError("functions to mend are in the book's convention: leave --variant away")
    return write_mend_assignment(course, chapter, number, whole_number(seed, 0))


@app.command()
def solution(
    assignment: str = ASSIGNMENT,
    output: Path | None = typer.Option(None, help="A new file. [default: in reports/]"),
    hidden: bool = typer.Option(
        False, "--hidden-tests", help="With the hidden tests, which are then known."
    ),
    course: Path = COURSE,
) -> None:
    """Write the solved notebook for students to read after the deadline."""
    from attncourse.grading.course.solution import write_solution

    print(f"{write_solution(course, assignment, output, hidden=hidden)} written")


@app.command()
def roster(
    files: list[Path] = typer.Argument(help="CSV files of the class, from any platform."),
    trust: str = TRUST,
    course: Path = COURSE,
    db: str | None = DB,
) -> None:
    """Enter the class in the gradebook: ids, names, addresses and the platforms' numbers."""
    from attncourse.grading.collect.enter import enter_class

    print_lines("\n".join(enter_class(course, files, db, trust)))


@app.command()
def collect(
    assignment: str = ASSIGNMENT,
    files: list[Path] = typer.Argument(help="Downloads: archives, or folders of what was in them."),
    roster: list[Path] | None = typer.Option(
        None, help="A CSV file of the class: ids, names, addresses, times. Also several."
    ),
    groups: Path | None = typer.Option(
        None, help="A CSV file: group,student. [default: groups.csv, where it is]"
    ),
    trust: str = TRUST,
    course: Path = COURSE,
    db: str | None = DB,
) -> None:
    """Put downloads from Moodle, Canvas or Gradescope, or notebooks, where grading finds them.

    Of several attempts the latest counts. Says what went where, and what is nobody's.
    Status 1: something was not collected.
    """
    from rich.console import Console

    from attncourse.grading.collect.collect import collect_downloads as collect_files
    from attncourse.grading.collect.collected_table import closing_lines, collected_table

    with ending_at_ctrl_c("what was collected stays, and the same command goes on"):
        collected = collect_files(course, assignment, files, roster, db, groups, trust)
    if table := collected_table(collected, assignment):
        Console().print(table)
    print_lines("\n".join(closing_lines(collected, assignment)))
    raise typer.Exit(1 if collected.left else 0)


@app.command()
def forget(
    student: str = typer.Argument(help="The id: a folder in submitted/."),
    yes: bool = typer.Option(False, "--yes", help="Remove it without a question."),
    keep_grade: bool = typer.Option(
        False, "--keep-grade", help="The points stay in the gradebook, without a comment."
    ),
    back: bool = typer.Option(
        False, "--back", help="Let a person in again who was forgotten. Nothing else comes back."
    ),
    course: Path = COURSE,
    db: str | None = DB,
) -> None:
    """Show all that there is of a student, here and in the gradebook, and remove it."""
    from attncourse.grading.term.forget import find_person, left_alone, person_traces, take_back
    from attncourse.grading.term.forget import forget_person as remove

    if back:
        take_back(course, student)
        print(f"{student} can be entered again")
        return
    person = find_person(course, student, db)
    traces = person_traces(course, person, db, keep_grade=keep_grade)
    print_lines("\n".join(f"  {trace}" for trace in traces))
    if untouched := left_alone(course, person):
        print_remark(
            f"yours, and not touched, though the person is named in it: {', '.join(untouched)}"
        )
    try:
        agreed = yes or typer.confirm(f"Remove all of this of {student}, for good?")
    except typer.Abort:
        agreed = False
    if not agreed:
        raise UserError("nothing was removed; --yes removes it without a question")
    remove(course, person, traces)
    print(f"{student} is forgotten, and neither collect nor grade enters them again")


@app.command("move-gradebook")
def move_gradebook(
    to: str = typer.Option(help="An empty database, say postgresql://USER:PASSWORD@HOST/NAME."),
    course: Path = COURSE,
    db: str | None = DB,
) -> None:
    """Copy the gradebook to another database, with the points and comments that people gave."""
    from attncourse.grading.gradebook.copying import copy_gradebook as move

    numbers = move(course, to, db)
    words = {"student": "student", "submitted_assignment": "submission", "comment": "comment"}
    parts = [count(numbers[table], word) for table, word in words.items()]
    print(f"{', '.join(parts)} copied, with every score; from now on name the new database in "
          "ATTNCOURSE_DB or with --db")  # fmt: skip


@app.command("new-term")
def new_term(
    name: str = typer.Argument(help="What the term that ends is called, say 2026-autumn."),
    course: Path = COURSE,
    db: str | None = DB,
) -> None:
    """Move a term's work, gradebook and all, to terms/NAME, and begin the next one."""
    from attncourse.grading.course.variants import PUBLISHED
    from attncourse.grading.term.moving import begin_term

    place, varied = begin_term(course, name, db)
    quoted_place = shlex.quote(str(place))
    print(f"the term is in {place}: attncourse report ASSIGNMENT --course {quoted_place} reads it")
    for assignment, variant in varied.items():
        print(
            f"exercises/{assignment} is still in the variant {variant}, and {PUBLISHED} is asked "
            f"for: attncourse release {assignment}, or with --variant {variant}"
        )
    print("next: attncourse roster class.csv")


@app.command()
def extend(
    student: str = typer.Argument(
        help="The id: a folder in submitted/. Or a CSV file of a section, for all who are on it."
    ),
    assignment: str | None = typer.Argument(None, help=FOLDER_HELP),
    everything: bool = ALL,
    days: float = typer.Option(help="Days after the due date; 0 takes them back."),
    course: Path = COURSE,
    db: str | None = DB,
) -> None:
    """Give a student, or a section, more time for an assignment, or for all.

    Grading again counts it.
    """
    from attncourse.grading.collect.enter import ids_listed
    from attncourse.grading.course.dates import shown_in, zone_of
    from attncourse.grading.course.folders import folders_in, require_known
    from attncourse.grading.gradebook.connection import find_gradebook
    from attncourse.grading.gradebook.submissions import grant_extension as give
    from attncourse.grading.gradebook.submissions import require_student

    assignments = folders_in(course / "solutions")
    names = one_or_all(assignment, everything, lambda: assignments)
    for name in names:
        require_known(name, assignments)
    book = find_gradebook(course, db)
    more = f"{count(days, 'day')} more" if days else "no more time than others"
    subject, students = f"{student} has", [student]
    if student.lower().endswith(".csv"):
        students = ids_listed(course, Path(student), db)
        subject = f"each of the {count(len(students), 'student')} of {student} has"
    for person in students:  # before anybody's is changed
        require_student(book, person)
    for name in names:
        due = None
        for person in students:
            due = give(book, person, name, days)
        until = (
            f"until {shown_in(zone_of(book.config), due)}" if due else "and it has no due date yet"
        )
        print(f"{subject} {more} for {name}, {until}; next: attncourse grade {name}")


@app.command()
def written(
    assignment: str = ASSIGNMENT,
    enter: Path | None = typer.Option(None, help="The table, with points and comments filled in."),
    course: Path = COURSE,
    db: str | None = DB,
) -> None:
    """Write what students wrote to the questions as one table, or enter its points and comments."""
    from attncourse.grading.results.written_answers import enter_answers, write_answers

    if enter is not None:
        print_lines("\n".join(enter_answers(course, assignment, enter, db)))
        return
    place, answers = write_answers(course, assignment, db)
    print(f"{place}: {count(answers, 'answer')}, those that are most alike one below the other")
    print(f"next: fill in points and comments, attncourse written {assignment} --enter {place}")


@app.command("questions")
def list_questions(
    assignment: str | None = typer.Argument(None, help="An assignment, say 05_kqv."),
    enter: Path | None = typer.Option(None, help="The table, with answers filled in."),
    course: Path = COURSE,
    db: str | None = DB,
) -> None:
    """List the open questions of students on their grades; of one assignment, as a table, too.

    Answers that are entered go into the next feedback pages.
    """
    from attncourse.grading.results.grade_questions import (
        enter_question_answers,
        question_lines,
        unanswered_questions,
        write_questions,
    )

    if assignment is None:
        if enter is not None:
            raise UserError("name the assignment that the table is of")
        print_lines("\n".join(question_lines(unanswered_questions(course))))
        return
    if enter is not None:
        number, students = enter_question_answers(course, assignment, enter, db)
        print_lines(f"{count(number, 'answer')} entered")
        for student in students:
            print_lines(f"next: attncourse feedback {assignment} --student {student}")
        return
    place, n_questions, still_open = write_questions(course, assignment)
    print_lines(f"{place}: {count(n_questions, 'question')}, {still_open} open")
    print(f"next: fill in answers, attncourse questions {assignment} --enter {place}")


@app.command()
def grade(
    assignment: str = ASSIGNMENT,
    student: str | None = typer.Option(None, help="Grade this student only."),
    jobs: int = JOBS,
    timeout: float = TIMEOUT,
    course: Path = COURSE,
    db: str | None = DB,
    force: bool = typer.Option(False, "--force", help="Run unchanged submissions too."),
    dask: str | None = typer.Option(None, metavar="ADDRESS", help="Grade on this Dask cluster."),
    unsafe: bool = typer.Option(
        False, "--unsafe-no-sandbox", help="Run where no jail is possible: submissions can do harm."
    ),
) -> None:
    """Grade submitted/*/ASSIGNMENT/, write the reports and nbgrader's gradebook.

    What was graded before and has not changed is not run again. Status 1: some could not be run.
    """
    with ending_at_ctrl_c("nothing was graded"):
        if dask is None:
            from attncourse.grading.judge.prestart import start_ahead

            jobs = choose_lanes(jobs)
            if not (course / "reports" / assignment).exists():  # where there may be nothing to run
                start_ahead(course / "solutions" / assignment / f"{assignment}.ipynb", jobs)
        from attncourse.grading.driver.command import grade_course

        outcome = grade_course(
            course,
            assignment,
            student,
            limits=Limits.of(timeout),
            lanes=jobs,
            db=db,
            force=force,
            dask=dask,
            sandbox=not unsafe,
        )
    end_process(1 if outcome.counts["failure"] else 0)


@app.command()
def report(
    assignment: str = GRADED,
    html: Path | None = typer.Option(
        None, help="The page. [default: reports/ASSIGNMENT/index.html]"
    ),
    warm_up: bool = typer.Option(
        False, "--warm-up", help="In place of it a page of drills for the next lecture."
    ),
    course: Path = COURSE,
    db: str | None = DB,
) -> None:
    """Show the class at a glance: here, and as a web page of one file."""
    from attncourse.grading.results.class_results import class_results
    from attncourse.grading.results.page import write_page
    from attncourse.grading.results.summary import Summary
    from attncourse.grading.results.terminal import at_a_glance, wide_console

    summary = Summary(class_results(course, assignment, db, gradebook=False))
    for sentence in summary.results.left_out:
        print_remark(sentence)
    if warm_up:
        print_warm_up(course, summary, html)
        return
    wide_console().print(at_a_glance(summary))
    print_lines(f"page: {write_page(course, summary, html)}")


def print_warm_up(course: Path, summary: "Summary", place: Path | None) -> None:
    """Write the page for the next lecture, and say where it is and what it lacks."""
    from attncourse.grading.results.warm_up import write_warm_up

    page = write_warm_up(course, summary, place)
    if page.without:
        print_remark(f"frequent, and without a drill: {'; '.join(page.without)}")
    print_lines(f"warm-up: {page.path}, {count(page.drills, 'drill')}")


@app.command()
def feedback(
    assignment: str = GRADED,
    student: str | None = typer.Option(None, help="This student's page only."),
    download: Path | None = typer.Option(
        None, help="The zip that Moodle or Canvas gave you: one to give back is made."
    ),
    course: Path = COURSE,
    db: str | None = DB,
) -> None:
    """Make a page for each student: the verdicts beside the answers, points and comments."""
    from attncourse.grading.feedback.command import give_feedback

    with ending_at_ctrl_c("some pages may be written"):
        output = give_feedback(course, assignment, student, db=db, download=download)
    for remark in output.remarks:
        print_remark(remark)
    print("\n".join(output.lines))


@app.command()
def export(
    assignment: str | None = typer.Argument(None, help="A graded assignment."),
    everything: bool = ALL,
    form: str = typer.Option(
        "csv",
        "--format",
        help="csv, canvas, moodle, totals, gradescope, gradescope-autograder (a zip).",
    ),
    output: Path | None = typer.Option(None, help="A file or a folder. [default: in reports/]"),
    roster: Path | None = typer.Option(None, help="Canvas' export: its students, in its order."),
    column: str | None = typer.Option(None, help="Its column to fill. [default: the assignment's]"),
    identifier: str | None = typer.Option(
        None,
        "--id",
        help="What Moodle knows a student by: email or idnumber. [default: username]",
    ),
    trust: str = TRUST,
    late_days: float | None = typer.Option(
        None, help="With --all: who takes which of so many late days in a term, in place of points."
    ),
    course: Path = COURSE,
    db: str | None = DB,
) -> None:
    """Write the gradebook's points, with manual scores and late penalties, to files."""
    from attncourse.grading.results.export import write_export as write_export

    one_or_all(assignment, everything, list)
    if late_days is not None:
        if not everything:
            raise UserError("late days are shared by all assignments: --all --late-days 5")
        if form != "csv" or roster or column or identifier:
            raise UserError("--late-days makes one worksheet, with no --format and its options")
        write_late_days(course, late_days, output, db)
        return
    if form == "gradescope-autograder":
        from attncourse.grading.autograder.bundle import write_bundle

        if assignment is None:
            raise UserError("an autograder is for one assignment: name it")
        print(f"{write_bundle(course, assignment, output)} written: upload it as the autograder")
        return
    exported = write_export(
        course,
        assignment,
        form,
        output=output,
        db=db,
        roster=roster,
        column=column,
        identifier=identifier,
        trust=trust,
    )
    for remark in exported.remarks:
        print_remark(remark)
    print(f"{exported.number} written to {exported.path}")


def write_late_days(course: Path, allowed: float, output: Path | None, db: str | None) -> None:
    """Write the worksheet of late days, and say how it comes to count."""
    from attncourse.grading.results.late_days import write_late_days_worksheet

    place, number = write_late_days_worksheet(course, allowed, output, db)
    print(
        f"{number} written to {place}; put in the place of {course / 'extensions.csv'}, they "
        "count from the next attncourse grade of each assignment on"
    )


@app.command()
def similar(
    assignment: str = typer.Argument(help="An assignment, say 05_kqv."),
    pairs: int = typer.Option(20, min=1, help="Show at most so many pairs."),
    course: Path = COURSE,
) -> None:
    """List pairs of submissions that are more alike than chance explains. No code is run."""
    from rich.console import Console

    from attncourse.grading.course.mending import has_functions_to_mend
    from attncourse.grading.results.similar import similar_pairs as find_similar
    from attncourse.grading.results.terminal import pairs_to_look_at

    if has_functions_to_mend(course, assignment):
        print_lines(
            f"{assignment} is of functions to mend: everybody was given the same code, and to mend "
            "it right is to write the same line. That two are alike says nothing, so no pair is "
            "listed."
        )
        return
    Console().print(pairs_to_look_at(find_similar(course, assignment), pairs))


@app.command()
def serve(
    folder: Path = typer.Argument(Path("_build/html"), help="The built book."),
    port: int = typer.Option(8000, min=0, max=65535, help="0: any that is free."),
) -> None:
    """Show the built book to a browser on this machine, until Ctrl-C."""
    from attncourse.grading.serve import serve_folder as serve_folder

    serve_folder(folder, port, lambda address: print(f"The book is at {address}", flush=True))


@app.command()
def doctor() -> None:
    """Show whether this machine can grade in a jail. Status 0: it can, 1: it cannot."""
    from rich.console import Console

    from attncourse.grading.doctor import jail_in_a_line, layer_table, machine_table, profile_lines
    from attncourse.grading.jail.jail import available_layers

    layers = available_layers()
    console = Console()
    console.print(layer_table(layers), machine_table(), "", jail_in_a_line(layers), sep="\n")
    for line in profile_lines(layers):
        print(line)
    raise typer.Exit(0 if all(layer.in_force for layer in layers if layer.required) else 1)


@app.command()
def demo(
    jobs: int = JOBS,
    course: Path = COURSE,
    folder: Path = typer.Option(Path("_build/demo"), help="Where to make it."),
) -> None:
    """Make a sample class of eight, grade it, and show the table."""
    from attncourse.grading.course.settings import require_nbgrader
    from attncourse.grading.demo import ASSIGNMENT, LIMITS, gradebook_url, make_course
    from attncourse.grading.files import reserved
    from attncourse.grading.isolation import isolated_environment
    from attncourse.grading.jail.jail import missing_required_layers

    require_nbgrader()
    with (
        ending_at_ctrl_c("the demo is not complete"),
        isolated_environment(),
        reserved(folder, print_remark),
    ):
        from attncourse.grading.driver.command import grade_course

        make_course(course, folder)
        missing = missing_required_layers()
        lanes = choose_lanes(jobs)
        db = gradebook_url(folder)
        grade_course(folder, ASSIGNMENT, limits=LIMITS, lanes=lanes, db=db, sandbox=not missing)
        if missing:  # the sample class is our own
            reason = f"{missing[0].name}: {missing[0].detail}"
            print(f"no jail here ({reason}): the sample class ran without one.")
            print("attncourse doctor says what to do")


if __name__ == "__main__":
    main()
