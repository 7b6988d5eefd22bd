"""Where ``nbgrader autograde`` meets the judge; nbgrader_config.py names these classes.

nbgrader reads a submission twice, through one exporter: from ``submitted/`` to put it in order,
then from ``autograded/`` to run it. Here the first reading is the grading; the second finds the
results in the notebook, and nbgrader's own steps save them.
"""

import secrets
import shutil
import sys
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

from nbconvert.exporters import NotebookExporter
from nbformat import reads
from nbgrader import preprocessors
from nbgrader.coursedir import CourseDirectory
from traitlets import Bool, Float

from attncourse.grading.course.changes import added_cells
from attncourse.grading.course.choosing import HandedFile, copies_of_assignment
from attncourse.grading.course.dates import zone_of
from attncourse.grading.course.extensions import read_extensions
from attncourse.grading.course.folders import FORGOTTEN, read_submission, with_remarks
from attncourse.grading.course.forgotten import Forgotten
from attncourse.grading.course.late import LatePenalty, time_in_stamp
from attncourse.grading.course.solution import outdated_solution
from attncourse.grading.course.variants import solved_in_variant
from attncourse.grading.errors import UserError
from attncourse.grading.gradebook.assignments import record_assignment
from attncourse.grading.gradebook.connection import find_gradebook
from attncourse.grading.gradebook.submissions import (
    enter_hand_in,
    enter_late_penalty,
    leave_tasks_to_person,
)
from attncourse.grading.graded_notebook import autograded_notebook
from attncourse.grading.jail.jail import missing_required_layers
from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.limits import Limits
from attncourse.grading.machine import slowness
from attncourse.grading.report import report_without_points
from attncourse.grading.submission.notebook import Assignment, read_assignment

UNSAFE_HINT = "c.JudgeExporter.unsafe_no_sandbox = True in nbgrader_config.py grades without one"


def coursedir_of(step: Any) -> Any:
    """Return the course's folders, as the nbgrader command has them that runs this step."""
    return step.parent.coursedir


class VariantExporter(NotebookExporter):
    """Reads an instructor's notebook for its release, in the assignment's variant."""

    def from_filename(self, filename: str, resources: Any = None, **options: Any) -> Any:
        """Return the notebook to release, and nbgrader's resources."""
        try:
            data = solved_in_variant(Path(coursedir_of(self).root), Path(filename))
        except UserError as error:
            self.log.error("%s", error)
            raise SystemExit(1) from None
        return self.from_notebook_node(reads(data.decode(), as_version=4), resources, **options)


class JudgeExporter(NotebookExporter):
    """Reads a submission, whatever its bytes are, as its graded notebook."""

    timeout = Float(Limits.submission, help="Seconds for one submission.").tag(config=True)
    follow_on = Bool(
        True,
        help="An answer earns what holds of it with right ones in place of wrong ones it calls.",
    ).tag(config=True)
    unsafe_no_sandbox = Bool(
        False, help="Grade where no sandbox is possible: submissions can do what you can do."
    ).tag(config=True)

    def __init__(self, **options: Any) -> None:
        """Prepare to judge; where no jail is possible, end before nbgrader removes anything."""
        super().__init__(**options)
        self._assignments: dict[tuple[str, str], Assignment] = {}
        self._seed = secrets.randbits(32)
        if not self.unsafe_no_sandbox:
            for layer in missing_required_layers():
                self.end_run(
                    f"no jail: {layer.name}: {layer.detail}; {layer.remedy} ({UNSAFE_HINT})"
                )

    def from_filename(self, filename: str, resources: Any = None, **options: Any) -> Any:
        """Return the notebook to write, and nbgrader's resources.

        nbgrader calls this twice: for what is in ``submitted/``, which is judged, and for what came
        of it in ``autograded/``, which has its points already and is read as any notebook.
        """
        ids = resources["nbgrader"]
        place = self.folder_of(ids["assignment"], ids["student"])
        if Path(filename).parent.resolve() == place.resolve():
            return super().from_filename(filename, resources, **options)
        try:
            text = self.judge_submission(ids["student"], ids["assignment"], ids["notebook"])
        except UserError as error:  # it would be the same for every other submission
            self.end_run(str(error))
        return self.from_notebook_node(reads(text, as_version=4), resources, **options)

    def end_run(self, reason: str) -> NoReturn:
        """End nbgrader's whole run; any other exception would end one submission only."""
        self.log.error("grading stopped: %s", reason)
        raise SystemExit(1)

    def judge_submission(self, student: str, name: str, notebook: str) -> str:
        """Judge what a student handed in and return the graded notebook's text.

        The time of the hand-in and the extension are entered in the gradebook.
        """
        assignment = self.assignment(name, notebook)
        course, source = Path(coursedir_of(self).root), source_folder(coursedir_of(self), name)
        handed_in = read_submission(course, name, student)
        zone, extension = zone_of(self.config), read_extensions(course).get((student, name))
        when = time_in_stamp(handed_in.timestamp, zone)
        gradebook = coursedir_of(self).db_url, coursedir_of(self).course_id
        enter_hand_in(*gradebook, student, name, when=when, extension=extension, zone=zone)
        if handed_in.data is None:
            report = report_without_points(assignment, handed_in.status, handed_in.reason, student)
        else:
            report = grade_submission(
                handed_in.data,
                assignment,
                seed=self._seed,
                student=student,
                limits=Limits.of(self.timeout).stretched(slowness()),
                sandbox=not self.unsafe_no_sandbox,
                hidden=tuple(str(place.resolve()) for place in (course, source)),
            )
        report = with_remarks(handed_in, report, zone)
        self.log.info("%s: %g of %g points", student, report.points, report.maximum)
        clear_autograded(self.folder_of(name, student), handed_in.timestamp)
        if handed_in.note:
            leave_tasks_to_person(*gradebook, student, name)
        return autograded_notebook(handed_in.data or b"", assignment, report)

    def assignment(self, name: str, notebook: str) -> Assignment:
        """Return the assignment of a notebook in ``solutions/``, which is read once.

        The gradebook has to have the same cells, or nbgrader could not save their points.
        """
        if (name, notebook) not in self._assignments:
            course = coursedir_of(self)
            root, path = Path(course.root), source_folder(course, name) / f"{notebook}.ipynb"
            assignment = read_assignment(path, solved_in_variant(root, path))
            assignment = replace(assignment, follow_on=self.follow_on)
            if notebook == name:
                for change in record_assignment(find_gradebook(root, course.db_url), name):
                    self.log.warning("the assignment changed: %s", change)
                for old in outdated_solution(root, name):
                    self.log.warning("%s", old)
                assignment = replace(assignment, added=added_cells(root, name))
            self._assignments[name, notebook] = assignment
        return self._assignments[name, notebook]

    def folder_of(self, name: str, student: str) -> Path:
        """Return the folder of a submission's graded notebook."""
        course = coursedir_of(self)
        return Path(course.format_path(course.autograded_directory, student, name))


def source_folder(course: CourseDirectory, name: str) -> Path:
    """Return the folder of an assignment's solved notebook."""
    return Path(course.format_path(course.source_directory, ".", name))


class AssignLatePenalties(preprocessors.AssignLatePenalties):
    """nbgrader's step of this name, with lateness counted by the class's clocks."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Enter the late penalty; return the notebook as it is, and nbgrader's resources."""
        ids = resources["nbgrader"]
        course = Path(coursedir_of(self.parent).root)
        penalty = LatePenalty(course, find_gradebook(course, ids["db_url"]).config)
        enter_late_penalty(
            ids["db_url"], ids["student"], ids["assignment"], ids["notebook"], penalty
        )
        return nb, resources


def clear_autograded(place: Path, timestamp: str) -> None:
    """Remove from a folder of ``autograded/`` all but notebooks; write the hand-in's time.

    nbgrader has copied there what lay beside the submission, and the formgrader would serve it,
    scripts and all, to a browser that is logged in.
    """
    if place.is_dir():
        for path in place.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.suffix != ".ipynb":
                path.unlink()
    if timestamp:
        place.mkdir(parents=True, exist_ok=True)
        (place / "timestamp.txt").write_text(timestamp + "\n", encoding="utf-8")


def accept_renamed(notebooks: list[str], **call_arguments: Any) -> None:
    """Put the name that nbgrader expects in the list, in place of an only notebook's own.

    Or in place of those of numbered copies. Ends nbgrader's run for a forgotten student.
    """
    folder = Path(notebooks[0]).parent
    student, course = folder.parent.name, folder.parents[2]
    if Forgotten(course).has_id(student):  # before nbgrader enters them
        print(f"grading stopped: {FORGOTTEN.format(student)}", file=sys.stderr)
        raise SystemExit(1)
    exact = str(folder / f"{folder.name}.ipynb")
    copies = copies_of_assignment(
        [HandedFile(PurePosixPath(notebook)) for notebook in notebooks], folder.name
    )
    if len(notebooks) == 1 or (copies and exact not in notebooks):
        notebooks[:] = [exact]
