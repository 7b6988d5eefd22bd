"""Ending a term: its work moves to the archive, where every command still reads it."""

import shutil
from pathlib import Path

from attncourse.grading.collect.groups import GROUPS_FILE
from attncourse.grading.course.extensions import EXTENSIONS_FILE
from attncourse.grading.course.folders import folders_in, why_unusable_name
from attncourse.grading.course.forgotten import FORGOTTEN_FILE
from attncourse.grading.course.variants import VARIANTS_FILE, variants_in
from attncourse.grading.errors import UserError
from attncourse.grading.files import explained_file_errors as file_explained
from attncourse.grading.gradebook.connection import find_gradebook

WORK_FOLDERS = (
    "submitted",
    "autograded",
    "feedback",
    "reports",
    EXTENSIONS_FILE,
    GROUPS_FILE,
    FORGOTTEN_FILE,
    VARIANTS_FILE,
)
# What grades it, and weighs it.
COPIED_WITH_WORK = (
    "solutions",
    "exercises",
    "nbgrader_config.py",
    "course_settings.py",
    "weights.csv",
)


def begin_term(course: Path, name: str, db: str | None = None) -> tuple[Path, dict[str, str]]:
    """Move a term's work to ``terms/NAME``, where every command still reads it; return the folder.

    And the variants in which assignments were released: what students get, in ``exercises/``, is
    in them still, while the new term asks for the published ones.

    Raises ``UserError`` if a term of that name is there, if there is nothing to move, and if the
    gradebook is a server's, which is named by its address.
    """
    if why_unusable_name(name) or Path(name).name != name or name.startswith("."):
        raise UserError(f"a term's name is that of a folder, as in 2026-autumn; got {name}")
    place, book = course / "terms" / name, find_gradebook(course, db)
    if place.exists():
        raise UserError(f"{place} is there already: nothing was moved; give the term another name")
    if book.file is None:
        raise UserError(
            f"{book} is a server's: begin the term with another database, and keep this one for "
            "the old term; attncourse move-gradebook --to sqlite:///gradebook.db brings it here"
        )
    varied = variants_in(course)
    existing = [course / entry for entry in WORK_FOLDERS if (course / entry).exists()]
    if book.file.exists():
        existing.append(book.file)
    if not existing:
        raise UserError(f"there is no term's work in {course}: nothing to move")
    for lock in (
        course / "reports" / entry / "journal.lock" for entry in folders_in(course / "reports")
    ):
        if lock.is_file():
            require_free(lock)
    with file_explained(place, "; what was moved is there, the rest is where it was"):
        place.mkdir(parents=True)
        for entry in COPIED_WITH_WORK:
            if (course / entry).is_dir():
                shutil.copytree(course / entry, place / entry)
            elif (course / entry).is_file():
                shutil.copy2(course / entry, place / entry)
        for path in existing:
            path.rename(place / path.name)
    return place, {
        name: variant for name, variant in varied.items() if (course / "exercises" / name).is_dir()
    }


def require_free(lock: Path) -> None:
    """Raise ``UserError`` if a process collects or grades an assignment at the moment."""
    from attncourse.grading.driver.journal import only_process

    with only_process(lock.parent, ""):
        pass
