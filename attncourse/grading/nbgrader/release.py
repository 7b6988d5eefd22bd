"""Releasing an assignment to students through nbgrader, and recording it in the gradebook."""

import logging
from pathlib import Path
from typing import Any

from attncourse.grading.course.folders import find_assignment
from attncourse.grading.course.settings import course_modules_importable
from attncourse.grading.course.variants import PUBLISHED, choose_variant, variants_in
from attncourse.grading.errors import UserError
from attncourse.grading.gradebook.assignments import (
    due_in_settings,
    enter_due_date,
    record_assignment,
)
from attncourse.grading.gradebook.connection import (
    find_gradebook,
    has_assignment,
    open_gradebook,
)

VARIED = "attncourse.grading.nbgrader.steps.VariantExporter"  # by name: it is built upon this


def release_assignment(
    course: Path, name: str, db: str | None = None, variant: str = ""
) -> tuple[list[Path], list[str]]:
    """Release an assignment as ``nbgrader generate_assignment`` does.

    It is in the variant that is named, or else in that of the last release. Returns the files that
    were written, and what changed since submissions were graded.
    """
    book = find_gradebook(course, db)
    find_assignment(course, name)
    due = due_in_settings(book, name)
    is_recorded = has_assignment(book, name)  # or it is another course's gradebook
    before = variants_in(course).get(name, PUBLISHED)
    choose_variant(course, name, variant or before)
    changed = record_assignment(book, name) if is_recorded else []
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import Config

    config = Config(book.config)
    config.CourseDirectory.root = str(course.resolve())
    config.CourseDirectory.db_url = book.address
    config.CourseDirectory.course_id = book.course_id
    config.CourseDirectory.source_directory = "solutions"
    config.CourseDirectory.release_directory = "exercises"
    config.GenerateAssignment.exporter_class = VARIED
    config.GenerateAssignment.preprocessors = release_steps()
    config.NbGraderAPI.log_level = logging.CRITICAL
    with course_modules_importable(course), open_gradebook(book) as gradebook:
        result = NbGraderAPI(config=config).generate_assignment(name)
        if result["success"]:
            gradebook.db.expire_all()
            enter_due_date(gradebook, name, due)
    place = course / "exercises" / name
    if not result["success"]:
        choose_variant(course, name, before)
        log = str(result.get("error") or result.get("log") or "no reason given").strip()
        raise UserError(f"nbgrader cannot release {name}: {log.splitlines()[-1]}")
    return sorted(path for path in place.rglob("*") if path.is_file()), changed


def release_steps() -> list[Any]:
    """Return nbgrader's steps of a release, with this course's in place of ClearSolutions."""
    from nbgrader.converters import GenerateAssignment
    from nbgrader.preprocessors import ClearSolutions

    from attncourse.grading.course.mending import clear_solutions_or_break

    trait: Any = GenerateAssignment.preprocessors
    steps = trait.default_args[0]
    own_step = clear_solutions_or_break()
    return [own_step if step is ClearSolutions else step for step in steps]
