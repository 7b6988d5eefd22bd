"""A student's progress: for every exercise of the course, whether it is done, tried or open."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from attncourse import MILESTONES, STEMS
from attncourse.checks.index import index, question_points
from attncourse.checks.reading.cells import UNANSWERED
from attncourse.checks.showing.verdict import (
    DONE,
    MARK_STATES,
    NOT_ATTEMPTED,
    OPEN,
    TRIED,
    points_in_words,
)
from attncourse.grading.errors import UserError
from attncourse.grading.limits import Limits
from attncourse.grading.machine import slowness
from attncourse.grading.report import Report, count
from attncourse.grading.results.terminal import empty_table
from attncourse.grading.student import selfcheck
from attncourse.grading.student.package import REACHED_FILE, milestones_reached
from attncourse.grading.submission.notebook import Cell, Cells
from attncourse.milestones import as_reached
from attncourse.practice.cells import is_for_practice

STUB_STATEMENT = "raise NotImplementedError()"
INSTRUCTORS = "### BEGIN HIDDEN TESTS"
MAX_REASONS_SHOWN = 3


@dataclass(frozen=True)
class FolderProgress:
    """The state of every exercise by its target, in the course's order, and the files behind it.

    ``places`` are the notebooks with an exercise's better answer, by target. ``left_out`` are
    sentences on files that were not counted, ``reached`` the milestones that a package in the
    folder has reached, with how many parts of ours. ``waiting`` are the questions, by target, whose
    answers wait for a person's points.
    """

    states: dict[str, str]
    places: dict[str, Path]
    left_out: tuple[str, ...] = ()
    reached: dict[str, int] = field(default_factory=dict)
    waiting: frozenset[str] = frozenset()

    def count(self, state: str, stem: str = "") -> int:
        """Return how many exercises have this state, in one chapter or, with "", in all."""
        chosen = [s for t, s in self.states.items() if not stem or t.startswith(f"{stem}.")]
        return chosen.count(state)

    def for_a_person(self, stem: str = "") -> str:
        """Return the points of answered questions, in one chapter or in all; "" for none."""
        answered = [t for t in self.waiting if not stem or t.startswith(f"{stem}.")]
        number = sum(question_points()[t] for t in answered)
        return f"; {points_in_words(number)} for a person" if answered else ""

    @property
    def next(self) -> str:
        """Return the exercise to do next; "" if all are done.

        It is the first that was tried and is not done, or else the first open one. Questions come
        last.
        """
        undone = [t for s in MARK_STATES[1:] for t, state in self.states.items() if state == s]
        return next(iter([*undone, *(t for t in question_points() if t not in self.waiting)]), "")

    @property
    def within_reach(self) -> list[str]:
        """Return the milestones that are not reached, though their chapters are done."""
        return [name for stem, name in MILESTONES.items() if self.milestone(stem) == TRIED]

    def milestone(self, stem: str) -> str:
        """Return the state of a chapter's milestone: done, tried (it can be reached) or open."""
        is_missing_some = self.count(OPEN, stem) + self.count(TRIED, stem)
        yours = self.reached.get(MILESTONES[stem]) == 0
        return DONE if yours else OPEN if is_missing_some else TRIED


class OwnNotebook(NamedTuple):
    """A notebook with exercises: its path, its bytes, its cells, its chapter's stem."""

    path: Path
    data: bytes
    cells: Cells
    stem: str


def own_notebooks(folder: Path) -> tuple[list[OwnNotebook], list[str]]:
    """Return the notebooks with exercises in and below a folder, and why others are left out.

    What students handed in counts in no folder but their own. Raises ``UserError`` for a folder
    without a notebook of the course.
    """
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}: name the one with your notebooks")
    relative = (path.relative_to(folder) for path in folder.rglob("*.ipynb") if path.is_file())
    all_paths = sorted(folder / p for p in relative if not any(part[0] == "." for part in p.parts))
    whose = selfcheck.handed_in_by(folder / "any")
    paths = [path for path in all_paths if selfcheck.handed_in_by(path) == whose]
    notebooks: list[OwnNotebook] = []
    left_out: list[str] = []
    if students_own := len(all_paths) - len(paths):
        skipped = f"{count(students_own, 'notebook')} in {selfcheck.SUBMITTED}/STUDENT/…"
        why = "students handed them in, and attncourse grade ASSIGNMENT runs them"
        left_out.append(f"{skipped}: {why}")
    for path in paths:
        try:
            data, cells = selfcheck.read_own_notebook(path)
            stem = selfcheck.chapter_of(cells, path.stem)
        except UserError as problem:
            left_out.append(str(problem))
            continue
        if any(INSTRUCTORS in cell.source for cell in cells):
            left_out.append(f"{path} is an instructor's notebook: it holds the answers")
        elif is_for_practice(cell.source for cell in cells):
            left_out.append(f"{path} is for practice: what is mended there is no answer of yours")
        elif any(cell.solution for cell in cells):
            notebooks.append(OwnNotebook(path, data, cells, stem))
        else:
            left_out.append(f"{path} is a page's notebook, and has no exercises")
    if not notebooks:
        why = "".join(f"; {reason}" for reason in left_out[:MAX_REASONS_SHOWN])
        raise UserError(f"no notebook with exercises of this course in {folder}{why}")
    return notebooks, left_out


def folder_progress(
    folder: Path, limits: Limits, on_judged: Callable[[int, int, str], None] = lambda *_: None
) -> FolderProgress:
    """Return the progress that the notebooks in and below a folder show.

    If two notebooks hold an exercise, the better answer counts. ``on_judged`` is called for each
    notebook that has been judged: how many, of how many, and its name. Raises ``UserError`` for a
    folder without a notebook of the course.
    """
    notebooks, left_out = own_notebooks(folder)
    limits = limits.stretched(slowness())

    begun = [(path, data, cells) for path, data, cells, _ in notebooks if attempted_answers(cells)]
    reports = selfcheck.check_each(begun, limits, explain=False)
    states, places, waiting = dict.fromkeys(index(), OPEN), {}, set()
    for number, (path, _, cells, stem) in enumerate(notebooks, 1):
        states_there = states_of(next(reports), cells) if attempted_answers(cells) else {}
        for target in states:
            state = states_there.get(target, OPEN)
            if MARK_STATES.index(state) < MARK_STATES.index(states[target]):
                states[target], places[target] = state, path
            elif target.startswith(f"{stem}."):
                places.setdefault(target, path)
        waiting |= {
            f"{stem}.{name}" for name in answered_questions(cells)
        } & question_points().keys()
        on_judged(number, len(notebooks), path.name)
    reached = reached_in_folder(folder)
    return FolderProgress(states, places, tuple(left_out), reached, frozenset(waiting))


def reached_in_folder(folder: Path) -> dict[str, int]:
    """Return the milestones that packages in a folder have reached, with the fewest of ours."""
    whose = selfcheck.handed_in_by(folder / "any")
    reached: dict[str, int] = {}
    for mark in sorted(folder.rglob(f"mine/{REACHED_FILE}")):
        if selfcheck.handed_in_by(mark) == whose:
            for milestone, n_ours in milestones_reached(mark.parent).items():
                reached[milestone] = min(n_ours, reached.get(milestone, n_ours))
    return reached


def answered_questions(cells: Iterable[Cell]) -> set[str]:
    """Return the grade ids of questions that are answered; a person gives their points."""
    return {c.grade_id for c in cells if c.question and UNANSWERED not in c.source}


def attempted_answers(cells: Iterable[Cell]) -> list[str]:
    """Return the grade ids of answers that are more than what was released."""
    return [c.grade_id for c in cells if c.solution and c.code and STUB_STATEMENT not in c.source]


def states_of(report: Report, cells: Iterable[Cell]) -> dict[str, str]:
    """Return the state of each exercise in one notebook, by its report."""
    states, written = {}, attempted_answers(cells)
    passed = {verdict["target"]: verdict["passed"] for verdict in report.verdicts}
    for target, cell in report.cells.items():
        tried = target in passed or target.split(".")[1] in written
        tried = tried and cell.message != NOT_ATTEMPTED
        states[target] = DONE if passed.get(target) else TRIED if tried else OPEN
    return states


def progress_table(folder_progress: FolderProgress) -> Table:
    """Return a table with a row for each chapter: how many exercises are done, which are not."""
    table = empty_table("chapter", "done#", "tried", "open")
    for number, stem in enumerate(STEMS, 1):
        states = {
            t.split(".")[1]: s
            for t, s in folder_progress.states.items()
            if t.startswith(f"{stem}.")
        }
        n_done, person = folder_progress.count("done", stem), folder_progress.for_a_person(stem)
        questions = {t.split(".")[1]: t for t in question_points() if t.startswith(f"{stem}.")}
        states |= {
            name: OPEN
            for name, target in questions.items()
            if target not in folder_progress.waiting
        }
        tried_names, open_names = (
            "\n".join(n for n, s in states.items() if s == x) for x in MARK_STATES[1:]
        )
        begun = n_done or tried_names or person
        n_exercises = len(states.keys() | questions.keys())
        table.add_row(
            Text(f"{number:2} {stem}", style="" if begun else "dim"),
            Text(
                f"{n_done} of {n_exercises}{person}",
                style="" if tried_names or open_names else "green",
            ),
            Text(tried_names, style="bold"),
            Text(open_names if begun else "all", style="dim"),
        )
        if stem in MILESTONES:
            state, name = folder_progress.milestone(stem), f"milestone {MILESTONES[stem]}"
            n_ours = folder_progress.reached.get(MILESTONES[stem])
            milestone_state = "" if n_ours is None else as_reached(n_ours).removeprefix("is ")
            mark = Text(milestone_state, style="green" if n_ours == 0 else "")
            can = f"attncourse {name}" if state == TRIED else ""
            table.add_row(Text(f"   {name}", style="dim"), mark, "", Text(can, style="bold"))
    return table


def summary(folder_progress: FolderProgress) -> str:
    """Return the lines below the table: what has been done, and what comes next."""
    n_done, n_tried = folder_progress.count("done"), folder_progress.count("tried")
    n_exercises = len(folder_progress.states) + len(question_points())
    lines = [f"{n_done} of {n_exercises} exercises done"]
    if n_tried > 0:
        lines[-1] += f", {n_tried} tried"
    lines[0] += folder_progress.for_a_person()
    yours = sum(n_ours == 0 for n_ours in folder_progress.reached.values())
    lines.append(f"{yours} of {len(MILESTONES)} milestones are yours")
    runs = [
        f"{name} {as_reached(n_ours)}" for name, n_ours in folder_progress.reached.items() if n_ours
    ]
    if runs:
        lines[-1] += f"; {', '.join(runs)}"
    if folder_progress.within_reach:
        name = folder_progress.within_reach[0]
        lines.append(
            "your answers make a model: attncourse assemble NOTEBOOK…, then attncourse milestone "
            f"{name}"
        )
    if not folder_progress.next:
        lines[0] += ": the whole course"
        return "\n".join(lines)
    stem, name = folder_progress.next.split(".")
    where = folder_progress.places.get(folder_progress.next)
    place = f"in {where}" if where else f"in the notebook of chapter {STEMS.index(stem) + 1}"
    exercise = index().get(folder_progress.next)
    takes = f" (about {exercise.minutes} minutes)" if exercise else ""
    lines.append(f"next: {name}, {place}{takes}")
    return "\n".join(lines)
